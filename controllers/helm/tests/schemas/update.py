#!/usr/bin/env python3
"""Writes what real Helm 3.17.3 says of every schema in cases.json: HELM=path/to/helm ./update.py

`helm` is the problems it names, sorted, for it names them in no order; "refused" where it takes the text for no schema; null
where the values fit.
"""
import json
import os
import pathlib
import subprocess
import tempfile

FILE = pathlib.Path(__file__).with_name("cases.json")


def said(schema, values):
    with tempfile.TemporaryDirectory() as folder:
        chart = pathlib.Path(folder)
        (chart / "Chart.yaml").write_text("apiVersion: v2\nname: c\nversion: 0.1.0\n")
        (chart / "values.yaml").write_text(json.dumps(values))
        (chart / "values.schema.json").write_text(schema)
        run = subprocess.run([os.environ["HELM"], "template", "r", folder], capture_output=True, text=True)
        if run.returncode == 0:
            return None
        problems = sorted(line for line in run.stderr.splitlines() if line.startswith("- "))
        return problems or "refused"


cases = json.loads(FILE.read_text())
for case in cases:
    case["helm"] = said(case["schema"], case["values"])
lines = [json.dumps(case, ensure_ascii=False) for case in cases]
FILE.write_text("[\n" + ",\n".join(lines) + "\n]\n")
