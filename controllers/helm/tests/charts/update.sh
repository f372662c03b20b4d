#!/bin/sh
# Writes what real Helm 3.17.3 says about every case beside it: HELM=path/to/helm ./update.sh
set -eu
cd "$(dirname "$0")"
for values in */*.values.yaml */*.refused.yaml; do
    folder=${values%%/*}
    case=${values%.*.yaml}
    flags=
    [ -f "$case.flags" ] && flags=$(cat "$case.flags")
    rm -f "$case.out" "$case.err"
    # Flags are words without spaces.
    # shellcheck disable=SC2086
    if "${HELM:?}" template shop "$folder/chart" --namespace store --include-crds --kube-version 1.32.0 \
        --values "$values" $flags > "$case.out" 2> "$case.err"; then
        rm "$case.err"
    else
        rm "$case.out"
        grep -v 'Use --debug flag' "$case.err" | grep -v '^$' | grep '^Error\|^-\|^  ' > "$case.err.tmp" || true
        mv "$case.err.tmp" "$case.err"
    fi
done
