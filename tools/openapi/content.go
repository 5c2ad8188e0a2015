package main

// What the document says beyond the proto files.

func info() *object {
	return obj(
		"title", "Signet",
		"version", "v1",
		"summary", "Identities and organizations",
		"description", "Manages users, organizations and identity providers. "+
			"The same operations are served over gRPC and gRPC-Web on the same port.\n\n"+
			"Lengths count Unicode code points. Unknown fields in a request are refused, and so are "+
			"headers `x-service-…` other than `x-service-orgid`. "+
			"Enums are written by name and 64-bit integers as decimal strings.",
		"license", obj("name", "Apache License 2.0", "identifier", "Apache-2.0"),
	)
}

func parameters() *object {
	return obj(
		"ContextOrganization", obj(
			"name", "x-service-orgid",
			"in", "header",
			"description", "Identifier of the organization to work in, for callers with permission there. "+
				"Without it, the organization of the caller.",
			"schema", obj("type", "string"),
		),
		"RequestOrganization", obj(
			"name", "x-service-orgid",
			"in", "header",
			"description", "Another way to send `orgId`. If both are sent they must be equal.",
			"schema", obj("type", "string"),
		),
		"IfMatch", obj(
			"name", "if-match",
			"in", "header",
			"description", "The `details.sequence` last seen, with or without quotes, or `*`. "+
				"If the object has changed since, the answer is ABORTED (409) and nothing is written.",
			"schema", obj("type", "string", "pattern", `^(\*|"[0-9]+"|[0-9]+)$`),
			"examples", obj("quoted", obj("value", `"7"`)),
		),
		"LastEventID", obj(
			"name", "last-event-id",
			"in", "header",
			"description", "Another way to send `cursor`, which browsers send when they reconnect. It overrides the parameter.",
			"schema", obj("type", "string"),
		),
		"IdempotencyKey", obj(
			"name", "idempotency-key",
			"in", "header",
			"description", "A value of the caller's choice that makes it safe to repeat the request: within 24 hours "+
				"the same key with the same request gives the first answer again, with another request INVALID_ARGUMENT.",
			"schema", obj("type", "string", "minLength", 1, "maxLength", 255, "pattern", "^[!-~]+$"),
		),
	)
}

// errorSchema describes the body of every answer that is not a success.
func errorSchema() *object {
	return obj(
		"title", "Error",
		"description", "Why a request failed.",
		"type", "object",
		"properties", obj(
			"code", obj(
				"type", "integer",
				"format", "int32",
				"description", "Status code of gRPC, such as 3 for INVALID_ARGUMENT or 5 for NOT_FOUND.",
			),
			"message", obj(
				"type", "string",
				"description", "Explanation for people, in English.",
			),
			"details", obj(
				"type", "array",
				"description",
				"Explanation for programs. There is always a `google.rpc.ErrorInfo` with a stable `reason`; "+
					"wrong fields are listed in a `google.rpc.BadRequest`.",
				"items", obj(
					"type", "object",
					"properties", obj("@type", obj(
						"type", "string",
						"description", "URL of the message type that the other properties belong to.",
					)),
					"required", []any{"@type"},
					"additionalProperties", true,
				),
			),
		),
		"required", []any{"code", "message", "details"},
	)
}

// responses are the answers that are not a success.
func responses() *object {
	return obj(
		"Invalid", failure("The request is not valid, or the state of the object does not allow it."),
		"Unauthenticated", failure("The token is missing or not valid."),
		"Denied", failure("The caller must not do this."),
		"NotFound", failure("There is no such object."),
		"Conflict", failure("A name is taken, or the object has changed since `if-match`."),
		"TooMany", failure("Too many requests: try again after `retry-after`."),
		"Error", failure("The request failed. `code` tells why, `details` tells more."),
	)
}

func failure(meaning string) *object {
	return obj("description", meaning, "content", jsonContent("Error"))
}

type status struct{ code, meaning string }

// statuses are failures of which a method says more.
var statuses = map[string][]status{
	"SetupOrganization": {
		{"400", "The organization or its first user is not valid."},
		{"403", "The caller must not set up organizations."},
		{"404", "Something that the request refers to does not exist."},
	},
	"UpdateIdentityProvider": {
		{"400", "A field breaks its rule."},
		{"403", "The caller must not change this identity provider."},
		{"404", "There is no such identity provider."},
	},
}

func ref(kind, name string) *object {
	return obj("$ref", "#/components/"+kind+"/"+name)
}

func jsonContent(schema string) *object {
	return obj("application/json", obj("schema", ref("schemas", schema)))
}
