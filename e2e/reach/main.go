// Judges connections by NetworkPolicies as cyclonus does: a second opinion on how policies are read.
//
// Each line of the input is {"policies": [...], "connections": [...]}; each line of the output says of every connection whether it is let
// through.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/mattfenwick/cyclonus/pkg/matcher"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
)

type pod struct {
	Namespace       string            `json:"namespace"`
	NamespaceLabels map[string]string `json:"namespaceLabels"`
	Labels          map[string]string `json:"labels"`
}

type endpoint struct {
	IP  string `json:"ip"`
	Pod *pod   `json:"pod"`
}

type connection struct {
	From     endpoint `json:"from"`
	To       endpoint `json:"to"`
	Protocol string   `json:"protocol"`
	Port     int      `json:"port"`
	PortName string   `json:"portName"`
}

type question struct {
	Policies    []*networking.NetworkPolicy `json:"policies"`
	Connections []connection                `json:"connections"`
}

func peer(end endpoint) *matcher.TrafficPeer {
	peer := &matcher.TrafficPeer{IP: end.IP}
	if end.Pod != nil {
		peer.Internal = &matcher.InternalPeer{
			Namespace:       end.Pod.Namespace,
			NamespaceLabels: end.Pod.NamespaceLabels,
			PodLabels:       end.Pod.Labels,
		}
	}
	return peer
}

func answer(line []byte) ([]bool, error) {
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		return nil, err
	}
	policies := matcher.BuildNetworkPolicies(false, asked.Policies)
	answers := make([]bool, 0, len(asked.Connections))
	for _, one := range asked.Connections {
		answers = append(answers, policies.IsTrafficAllowed(&matcher.Traffic{
			Source:           peer(one.From),
			Destination:      peer(one.To),
			ResolvedPort:     one.Port,
			ResolvedPortName: one.PortName,
			Protocol:         core.Protocol(one.Protocol),
		}).IsAllowed())
	}
	return answers, nil
}

func run() error {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<26)
	out := bufio.NewWriter(os.Stdout)
	for lines.Scan() {
		answers, err := answer(lines.Bytes())
		if err != nil {
			return err
		}
		if err := json.NewEncoder(out).Encode(answers); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return out.Flush()
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
