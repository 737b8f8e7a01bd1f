// Prints the schemas of the Kubernetes types that OLM's CustomResourceDefinitions embed, as controller-gen makes them, without
// descriptions: shared/core/src/api/crd/kubernetes.json. A `$ref` names another of its entries.
//
//	go run ./schemas > ../../shared/core/src/api/crd/kubernetes.json
package main

import (
	"encoding/json"
	"os"
	"path"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-tools/pkg/crd"
	crdmarkers "sigs.k8s.io/controller-tools/pkg/crd/markers"
	"sigs.k8s.io/controller-tools/pkg/loader"
	"sigs.k8s.io/controller-tools/pkg/markers"
)

var roots = map[string][]string{
	"k8s.io/api/admissionregistration/v1":  {"RuleWithOperations"},
	"k8s.io/api/apps/v1":                   {"DeploymentSpec"},
	"k8s.io/api/core/v1":                   {"Affinity", "EnvFromSource", "EnvVar", "LocalObjectReference", "ObjectReference", "ResourceRequirements", "Toleration", "Volume", "VolumeMount"},
	"k8s.io/api/rbac/v1":                   {"PolicyRule"},
	"k8s.io/apimachinery/pkg/apis/meta/v1": {"Condition", "LabelSelector"},
}

func main() {
	names := make([]string, 0, len(roots))
	for name := range roots {
		names = append(names, name)
	}
	packages, err := loader.LoadRoots(names...)
	check(err)
	registry := &markers.Registry{}
	check(crdmarkers.Register(registry))
	parser := &crd.Parser{Collector: &markers.Collector{Registry: registry}, Checker: &loader.TypeChecker{}}
	crd.AddKnownTypes(parser)
	for _, p := range packages {
		parser.NeedPackage(p)
		for _, name := range roots[p.PkgPath] {
			parser.NeedSchemaFor(crd.TypeIdent{Package: p, Name: name})
		}
	}
	out := map[string]apiextensions.JSONSchemaProps{}
	for ident, schema := range parser.Schemata {
		schema := schema.DeepCopy()
		crd.EditSchema(schema, editor{ident.Package.PkgPath})
		out[named(ident.Package.PkgPath, ident.Name)] = *schema
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", " ")
	check(encoder.Encode(out))
}

// named is the name that Kubernetes' own schemas have for a type: io.k8s.api.core.v1.Pod.
func named(pkg, name string) string {
	host, rest, _ := strings.Cut(pkg, "/")
	parts := strings.Split(host, ".")
	for i, j := 0, len(parts)-1; i < j; i, j = i+1, j-1 {
		parts[i], parts[j] = parts[j], parts[i]
	}
	return strings.Join(parts, ".") + "." + strings.ReplaceAll(path.Join(rest, name), "/", ".")
}

type editor struct{ pkg string }

// Visit drops what the schemas of a CRD leave out, and names types as Kubernetes does.
func (e editor) Visit(schema *apiextensions.JSONSchemaProps) crd.SchemaVisitor {
	if schema == nil {
		return e
	}
	schema.Description, schema.Title = "", ""
	if schema.Ref != nil && strings.HasPrefix(*schema.Ref, "#") { // a node can be visited twice
		ident, pkg, err := crd.RefParts(*schema.Ref)
		check(err)
		if pkg == "" {
			pkg = e.pkg
		}
		ref := named(pkg, ident)
		schema.Ref = &ref
	}
	return e
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
