package pagestest

import (
	"reflect"

	"github.com/signet-idm/signet/internal/transport/pages"
)

// Filled gives every sample with all its strings replaced by one: names come from people and applications, and some of
// them are hostile. New fields and views are filled without anyone remembering.
func Filled(text string) []Sample {
	samples := Samples()
	for i := range samples {
		v := reflect.New(reflect.TypeOf(samples[i].View)).Elem()
		v.Set(reflect.ValueOf(samples[i].View))
		fill(v, text)
		samples[i].View = v.Interface().(pages.View)
	}
	return samples
}

func fill(v reflect.Value, text string) {
	switch {
	case v.Type() == reflect.TypeFor[pages.Message]():
		v.Set(reflect.ValueOf(pages.Said(text)))
	case v.Type() == reflect.TypeFor[pages.Link]():
	case v.Type() == reflect.TypeFor[string]():
		v.SetString(text)
	case v.Type() == reflect.TypeFor[[]byte]():
		v.SetBytes([]byte(text))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i), text)
			}
		}
	case v.Kind() == reflect.Slice:
		filled := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(filled, v)
		if filled.Len() == 0 { // so that what is repeated is there at least once
			filled = reflect.MakeSlice(v.Type(), 1, 1)
		}
		for i := range filled.Len() {
			fill(filled.Index(i), text)
		}
		v.Set(filled)
	}
}
