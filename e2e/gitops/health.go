package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"
	luajson "layeh.com/gopher-json"
)

// The time that Argo CD gives a script.
const limit = time.Second

// health runs the scripts in a machine like Argo CD's: the package, base and table libraries and two functions of os, no
// strings, no input or output, one second.
func health(question *json.Decoder) (any, error) {
	var asked struct {
		Scripts map[string]string `json:"scripts"`
		Objects []object          `json:"objects"`
	}
	if err := question.Decode(&asked); err != nil {
		return nil, err
	}
	answers := make([]answer, 0, len(asked.Objects))
	for _, content := range asked.Objects {
		found, err := judge(asked.Scripts, numbers(content))
		if err != nil {
			found = answer{Error: err.Error()}
		}
		answers = append(answers, found)
	}
	return answers, nil
}

func judge(scripts map[string]string, content object) (answer, error) {
	version, _ := content["apiVersion"].(string)
	group, _, _ := strings.Cut(version, "/")
	key := fmt.Sprintf("%s_%v", group, content["kind"])
	script, known := scripts[key]
	if !known {
		return answer{}, fmt.Errorf("there is no script for %s", key)
	}
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{
		lua.LoadLibName: lua.OpenPackage,
		lua.BaseLibName: lua.OpenBase,
		lua.TabLibName:  lua.OpenTable,
	} {
		call := lua.P{Fn: state.NewFunction(open), Protect: true}
		if err := state.CallByParam(call, lua.LString(name)); err != nil {
			return answer{}, err
		}
	}
	state.PreloadModule(lua.OsLibName, safeOS)
	ending, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	state.SetContext(ending)
	state.SetGlobal("obj", toLua(state, content))
	if err := state.DoString(script); err != nil {
		return answer{}, err
	}
	result := state.Get(-1)
	if result.Type() != lua.LTTable {
		return answer{}, fmt.Errorf("the script gives a %s, not a table", result.Type())
	}
	encoded, err := luajson.Encode(result)
	if err != nil {
		return answer{}, err
	}
	var found answer
	if err := json.Unmarshal(encoded, &found); err != nil {
		return answer{}, err
	}
	switch found.Status {
	case "Healthy", "Progressing", "Degraded", "Suspended", "Missing", "Unknown":
		return found, nil
	}
	return answer{}, fmt.Errorf("%q is no health status of Argo CD", found.Status)
}

// safeOS has what Argo CD leaves of the library.
func safeOS(state *lua.LState) int {
	now := func(state *lua.LState) int {
		state.Push(lua.LNumber(time.Now().Unix()))
		return 1
	}
	state.Push(state.SetFuncs(state.NewTable(), map[string]lua.LGFunction{"time": now, "date": now}))
	return 1
}

func toLua(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case bool:
		return lua.LBool(value)
	case float64:
		return lua.LNumber(value)
	case int64:
		return lua.LNumber(value)
	case string:
		return lua.LString(value)
	case []any:
		list := state.NewTable()
		for _, item := range value {
			list.Append(toLua(state, item))
		}
		return list
	case map[string]any:
		table := state.NewTable()
		for key, item := range value {
			table.RawSetString(key, toLua(state, item))
		}
		return table
	}
	return lua.LNil
}
