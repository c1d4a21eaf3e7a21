// Renders the templates of a Helm chart, as far as this chart needs Helm: Go's templates, the functions of sprig, `include` and
// `toYaml`. It is used where there is no helm.
//
//	GO111MODULE=off GOPATH=/usr/share/gocode go run deploy/tests/chart/render.go CHART < VALUES
//
// VALUES is YAML or JSON with the members Values, Chart and Release.
package main

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"gopkg.in/yaml.v3"
)

func main() {
	log.SetFlags(0)
	var values map[string]interface{}
	if err := yaml.NewDecoder(os.Stdin).Decode(&values); err != nil {
		log.Fatal(err)
	}
	all := template.New("chart").Option("missingkey=error")
	functions := sprig.TxtFuncMap()
	functions["toYaml"] = func(value interface{}) (string, error) {
		text, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(text), "\n"), err
	}
	functions["include"] = func(name string, data interface{}) (string, error) {
		var out strings.Builder
		err := all.ExecuteTemplate(&out, name, data)
		return out.String(), err
	}
	all.Funcs(functions)
	files, err := filepath.Glob(filepath.Join(os.Args[1], "templates", "*"))
	if err != nil || len(files) == 0 {
		log.Fatal("no templates: ", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil {
			_, err = all.New(filepath.Base(file)).Parse(string(text))
		}
		if err != nil {
			log.Fatal(err)
		}
	}
	for _, file := range files {
		name := filepath.Base(file)
		if filepath.Ext(name) != ".yaml" && name != "NOTES.txt" {
			continue
		}
		var out strings.Builder
		if err := all.ExecuteTemplate(&out, name, values); err != nil {
			log.Fatal(err)
		}
		if name != "NOTES.txt" {
			fmt.Printf("---\n# %s\n%s\n", name, out.String())
		}
	}
}
