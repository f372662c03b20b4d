package main

import (
	"cmp"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// tag is what a field says of how it is merged.
type tag struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Path has the names of fields with dots between them; an item of a list has none, and * stands for any key of a map.
	Path string `json:"path"`
	// Form is list, map (a struct, too) or value.
	Form     string `json:"form"`
	Strategy string `json:"patchStrategy"`
	MergeKey string `json:"patchMergeKey"`
}

// printTags prints the tags of all kinds that have metadata, in order.
func printTags(scheme *runtime.Scheme) error {
	var tags []tag
	for kind, typed := range scheme.AllKnownTypes() {
		metadata, isThere := typed.FieldByName("ObjectMeta")
		if !isThere || metadata.Type != reflect.TypeFor[metav1.ObjectMeta]() {
			continue
		}
		through := walk{found: func(each tag) {
			each.APIVersion, each.Kind = kind.GroupVersion().String(), kind.Kind
			tags = append(tags, each)
		}}
		through.below(typed, "")
	}
	slices.SortFunc(tags, func(one, other tag) int {
		return cmp.Or(
			cmp.Compare(one.APIVersion, other.APIVersion),
			cmp.Compare(one.Kind, other.Kind),
			cmp.Compare(one.Path, other.Path),
		)
	})
	encoder := json.NewEncoder(os.Stdout)
	for _, each := range tags {
		if err := encoder.Encode(each); err != nil {
			return err
		}
	}
	return nil
}

// walk goes through the fields that a patch of a kind can get to. What is inside of a list or map that is replaced as a whole is none.
type walk struct {
	found func(tag)
	// above has the structs around: one may have itself as a part.
	above []reflect.Type
}

// below looks at a value, and at what is inside of it.
func (w *walk) below(t reflect.Type, path string) {
	t = pointed(t)
	switch t.Kind() {
	case reflect.Map:
		w.below(t.Elem(), join(path, "*"))
	case reflect.Struct:
		if slices.Contains(w.above, t) {
			return
		}
		w.above = append(w.above, t)
		for _, name := range names(t) {
			w.field(t, name, join(path, name))
		}
		w.above = w.above[:len(w.above)-1]
	}
}

// field reads the tags of a field as the library reads them when it merges.
func (w *walk) field(t reflect.Type, name, path string) {
	below, meta, err := strategicpatch.PatchMetaFromStruct{T: t}.LookupPatchMetadataForStruct(name)
	if err != nil {
		// Two embedded structs have a field of this name: for JSON it is none, and the library refuses patches of it.
		return
	}
	fieldType := pointed(below.(strategicpatch.PatchMetaFromStruct).T)
	form := formOf(fieldType)
	strategies := slices.DeleteFunc(meta.GetPatchStrategies(), func(strategy string) bool { return strategy == "" })
	if key := meta.GetPatchMergeKey(); len(strategies) > 0 || key != "" {
		w.found(tag{Path: path, Form: form, Strategy: strings.Join(strategies, ","), MergeKey: key})
	}
	switch {
	case form == "list" && slices.Contains(strategies, "merge"):
		w.below(fieldType.Elem(), path)
	case form == "map" && !slices.Contains(strategies, "replace"):
		w.below(fieldType, path)
	}
}

func formOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		return "list"
	case reflect.Struct, reflect.Map:
		return "map"
	default:
		return "value"
	}
}

// names are those that the fields of a struct have in JSON, with the fields of embedded structs.
func names(t reflect.Type) []string {
	var found []string
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		inner := pointed(field.Type)
		switch {
		case name == "-":
		case name == "" && field.Anonymous && inner.Kind() == reflect.Struct:
			found = append(found, names(inner)...)
		case !field.IsExported():
		case name == "":
			found = append(found, field.Name)
		default:
			found = append(found, name)
		}
	}
	return found
}

// pointed is the type without pointers before it.
func pointed(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
