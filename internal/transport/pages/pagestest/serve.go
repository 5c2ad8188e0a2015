package pagestest

import (
	"html/template"
	"log/slog"
	"net/http"
	"net/url"

	"github.com/signet-idm/signet/internal/transport/pages"
)

var contents = template.Must(template.New("").Parse(`<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>Pages</title><main><h1>Pages</h1><ul>
{{range .Samples}}{{$name := .Name}}<li>{{$name}}: {{range $.Languages}}<a href="/preview/{{.}}/{{$name}}">{{.}}</a> {{end}}</li>
{{end}}</ul></main></html>`))

// Handler serves every sample at /preview/LANGUAGE/NAME, and a list of them at /. Forms lead back to their page.
func Handler(external *url.URL, log *slog.Logger) (http.Handler, error) {
	p, err := pages.New(pages.Config{ExternalURL: external, Log: log})
	if err != nil {
		return nil, err
	}
	samples := map[string]Sample{}
	for _, s := range Samples() {
		samples[s.Name] = s
	}
	mux := http.NewServeMux()
	mux.Handle(pages.AssetsPath, p.Assets())
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		if err := contents.Execute(w, map[string]any{"Samples": Samples(), "Languages": pages.Languages}); err != nil {
			log.Error("the list of pages", "error", err)
		}
	})
	mux.Handle("/preview/{language}/{name}",
		p.SameOrigin(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s, ok := samples[r.PathValue("name")]
			if !ok {
				p.Render(w, r, http.StatusNotFound, pages.Failed{What: pages.NotFound})
				return
			}
			r.Header.Set("Accept-Language", r.PathValue("language"))
			p.Render(w, r, http.StatusOK, s.View)
		})))
	return mux, nil
}
