package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// object is a JSON object that keeps its members in order: readers of the
// document meet fields in the order the proto files have them. All methods that
// read accept a nil object.
type object struct {
	keys   []string
	values map[string]any
}

func newObject() *object {
	return &object{values: map[string]any{}}
}

// obj makes an object of alternating names and values.
func obj(members ...any) *object {
	o := newObject()
	for i := 0; i < len(members); i += 2 {
		o.set(members[i].(string), members[i+1])
	}
	return o
}

func (o *object) set(key string, value any) {
	if _, ok := o.values[key]; !ok {
		o.keys = append(o.keys, key)
	}
	o.values[key] = value
}

func (o *object) remove(key string) {
	delete(o.values, key)
	o.keys = slices.DeleteFunc(o.keys, func(k string) bool { return k == key })
}

func (o *object) get(key string) any {
	if o == nil {
		return nil
	}
	return o.values[key]
}

func (o *object) object(key string) *object {
	v, _ := o.get(key).(*object)
	return v
}

func (o *object) list(key string) []any {
	v, _ := o.get(key).([]any)
	return v
}

func (o *object) string(key string) string {
	v, _ := o.get(key).(string)
	return v
}

// order moves the given members to the front.
func (o *object) order(keys ...string) {
	rank := func(key string) int {
		if i := slices.Index(keys, key); i >= 0 {
			return i
		}
		return len(keys)
	}
	slices.SortStableFunc(o.keys, func(a, b string) int { return rank(a) - rank(b) })
}

// MarshalJSON writes the members in their order.
func (o *object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, k := range o.keys {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := write(&b, k); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		if err := write(&b, o.values[k]); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func write(b *bytes.Buffer, v any) error {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// encode writes the document with indentation and a final line break.
func encode(doc *object) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(doc); err != nil {
		panic(err) // the values come from parse and from literals
	}
	return b.Bytes()
}

func parse(data []byte) (*object, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	v, err := value(dec)
	if err != nil {
		return nil, err
	}
	doc, ok := v.(*object)
	if !ok {
		return nil, fmt.Errorf("not an object but %T", v)
	}
	return doc, nil
}

func value(dec *json.Decoder) (any, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		o := newObject()
		for dec.More() {
			key, err := dec.Token()
			if err != nil {
				return nil, err
			}
			v, err := value(dec)
			if err != nil {
				return nil, err
			}
			o.set(key.(string), v)
		}
		_, err := dec.Token()
		return o, err
	case json.Delim('['):
		list := []any{}
		for dec.More() {
			v, err := value(dec)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := dec.Token()
		return list, err
	}
	return token, nil
}
