package rpc

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// The headers that requests carry beside their message, by the names that violations use.
const (
	orgHeader         = "x-service-orgid"
	ifMatchHeader     = "if-match"
	idempotencyHeader = "idempotency-key"
	timeoutHeader     = "grpc-timeout"
	lastEventHeader   = "last-event-id"
)

// servicePrefix begins the names that belong to the API. A header with such a name that the API does not know is
// refused: whoever mistypes the organization's would otherwise change another organization.
const servicePrefix = "X-Service-"

// The same as net/http stores them, so that looking them up costs no conversion.
const (
	keyAuthorization  = "Authorization"
	keyOrg            = "X-Service-Orgid"
	keyIfMatch        = "If-Match"
	keyIdempotency    = "Idempotency-Key"
	keyTimeout        = "Grpc-Timeout"
	keyLastEvent      = "Last-Event-Id"
	maxIdempotencyKey = 255
)

func protoString(s string) protoreflect.Value { return protoreflect.ValueOfString(s) }

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// credential takes the token out of the authorization header (RFC 6750), of which there must be one. bound says that it
// was sent as one that is bound to a key (RFC 9449).
func credential(h http.Header) (token string, bound, ok bool) {
	values := h[keyAuthorization]
	if len(values) != 1 {
		return "", false, false
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if bound = strings.EqualFold(scheme, "DPoP"); !bound && !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", false, false
	}
	for i := range len(token) {
		if c := token[i]; !isAlphanumeric(c) && !strings.ContainsRune("-._~+/=", rune(c)) {
			return "", false, false
		}
	}
	return token, bound, true
}

// readHeaders puts the headers that the operation honours into the call's description, and says what is wrong with
// them.
func (c *Call) readHeaders() (found []errs.Violation) {
	refuse := func(header, message string) {
		found = append(found, errs.Violation{Field: header, Message: message})
	}
	switch values := c.Request.Header[keyOrg]; {
	case len(values) > 1:
		refuse(orgHeader, "must be sent only once")
	case len(values) == 1 && !utf8.ValidString(values[0]):
		refuse(orgHeader, "must be valid UTF-8")
	case len(values) == 1:
		c.Info.OrgHeader = values[0]
	}
	if values := c.Request.Header[keyIfMatch]; c.op.rule.GetUpdates() && len(values) > 0 {
		var problem string
		if len(values) > 1 {
			problem = "must be sent only once"
		} else {
			c.Info.IfMatch, problem = parseIfMatch(values[0])
		}
		if problem != "" {
			refuse(ifMatchHeader, problem)
		}
	}
	if values := c.Request.Header[keyIdempotency]; c.op.rule.GetCreates() && len(values) > 0 {
		switch {
		case len(values) > 1:
			refuse(idempotencyHeader, "must be sent only once")
		case !isIdempotencyKey(values[0]):
			refuse(idempotencyHeader, "must have 1 to 255 visible ASCII characters")
		default:
			c.Info.IdempotencyKey = values[0]
		}
	}
	for _, name := range unknownHeaders(c.Request.Header) {
		refuse(name, "is not a header of this API: to name an organization, send "+orgHeader)
	}
	return found
}

// unknownHeaders names, in order, the headers that look like those of the API and are none. net/http has brought the
// names of all protocols into one form. A request without such headers costs no memory.
func unknownHeaders(h http.Header) (names []string) {
	for key := range h {
		if strings.HasPrefix(key, servicePrefix) && key != keyOrg {
			names = append(names, readable(strings.ToLower(key)))
		}
	}
	slices.Sort(names)
	return names
}

// parseIfMatch reads "<sequence>", <sequence> or *.
func parseIfMatch(s string) (m event.IfMatch, problem string) {
	if s == "*" {
		return event.IfMatch{}, "" // the object must exist, and an update fails anyway if it does not
	}
	if strings.HasPrefix(s, "W/") {
		return event.IfMatch{}, `must not be a weak tag: send "<sequence>" without W/`
	}
	digits := s
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		digits = s[1 : len(s)-1]
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || strconv.FormatUint(n, 10) != digits {
		return event.IfMatch{}, `must be the sequence last seen, such as "7", or *`
	}
	return event.IfMatch{Set: true, Sequence: n}, ""
}

func isIdempotencyKey(s string) bool {
	if len(s) < 1 || len(s) > maxIdempotencyKey {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
