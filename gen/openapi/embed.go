// Package openapi holds the OpenAPI document of the REST API.
package openapi

import _ "embed"

// Document is the OpenAPI 3.1 document in JSON. Callers must not change it.
//
//go:embed openapi.json
var Document []byte
