package journal

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// payload is that of an event as it is shown. Older versions recorded the addresses of webhooks, in which there may be
// tokens: of them no more is shown than of a webhook itself.
func payload(e *event.Event) json.RawMessage {
	if e.Type != "webhook.added.v1" && e.Type != "webhook.settings_changed.v1" {
		return readable(e.Payload)
	}
	return changed(e.Payload, func(fields map[string]any) {
		if url, ok := fields["url"].(string); ok {
			fields["url"] = syntax.ShownURL(url)
		} else {
			delete(fields, "url")
		}
		tidy(fields)
	})
}

// personalOf is the personal part of an event as it is shown. Events about new people leave out a display name that is
// made of first and last name.
func personalOf(e *event.Event, opened []byte) json.RawMessage {
	if e.Type != (user.HumanAdded{}).EventType() && e.Type != (user.HumanImported{}).EventType() {
		return readable(opened)
	}
	return changed(opened, func(fields map[string]any) {
		tidy(fields)
		profile, _ := fields["profile"].(map[string]any)
		if name, _ := profile["displayName"].(string); profile != nil && name == "" {
			first, _ := profile["firstName"].(string)
			last, _ := profile["lastName"].(string)
			profile["displayName"] = user.FullName(first, last)
		}
	})
}

// times are the names of fields that hold microseconds.
var times = []string{"expires", "created", "until", "at", "made", "signsFrom"}

// readable is what facts hold, for people and other programs: times as such, and without the keys by which names are
// compared.
func readable(raw []byte) json.RawMessage {
	internal := func(name string) bool { return bytes.Contains(raw, []byte(`"`+name+`":`)) }
	if !bytes.Contains(raw, []byte(`Key":`)) && !slices.ContainsFunc(times, internal) {
		return raw // most are
	}
	return changed(raw, tidy)
}

func tidy(fields map[string]any) {
	for name, value := range fields {
		number, isNumber := value.(json.Number)
		switch {
		case slices.Contains([]string{"userNameKey", "nameKey", "emailKey"}, name):
			delete(fields, name)
		case isNumber && slices.Contains(times, name):
			if micros, err := number.Int64(); err == nil && micros > 0 {
				fields[name] = event.Time(micros)
			}
		default:
			tidyInside(value)
		}
	}
}

func tidyInside(value any) {
	switch v := value.(type) {
	case map[string]any:
		tidy(v)
	case []any:
		for _, element := range v {
			tidyInside(element)
		}
	}
}

// changed is an object of JSON after a change.
func changed(raw []byte, change func(map[string]any)) json.RawMessage {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var fields map[string]any
	if decoder.Decode(&fields) != nil {
		return json.RawMessage("{}") // what cannot be read cannot be judged
	}
	change(fields)
	shown, err := json.Marshal(fields)
	if err != nil {
		return json.RawMessage("{}")
	}
	return shown
}
