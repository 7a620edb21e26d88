// Executes templates by text/template: reads {"data": ..., "templates": [...]}, writes [{"text": ...} or {"error": ...}].
package main

import (
	"encoding/json"
	"os"
	"strings"
	"text/template"
)

type result struct {
	Text  string `json:"text"`
	Error string `json:"error,omitempty"`
}

func render(source string, data any) result {
	t, err := template.New("t").Parse(source)
	if err != nil {
		return result{Error: err.Error()}
	}
	var out strings.Builder
	if err := t.Execute(&out, data); err != nil {
		return result{Error: err.Error()}
	}
	return result{Text: out.String()}
}

func main() {
	var input struct {
		Data      any      `json:"data"`
		Templates []string `json:"templates"`
	}
	if err := json.NewDecoder(os.Stdin).Decode(&input); err != nil {
		panic(err)
	}
	results := []result{}
	for _, source := range input.Templates {
		results = append(results, render(source, input.Data))
	}
	if err := json.NewEncoder(os.Stdout).Encode(results); err != nil {
		panic(err)
	}
}
