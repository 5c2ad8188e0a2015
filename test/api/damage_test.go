package api_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// rawCodec sends bytes as they are, so that the client cannot refuse what the server must.
type rawCodec struct{}

func (rawCodec) Name() string                       { return "proto" }
func (rawCodec) Marshal(v any) ([]byte, error)      { return v.([]byte), nil }
func (rawCodec) Unmarshal(data []byte, v any) error { return proto.Unmarshal(data, v.(proto.Message)) }

// damagedMessages sends over gRPC and gRPC-Web what their clients would not.
func damagedMessages(t *testing.T, w *World) {
	s := w.scene(t)
	auth := header("authorization", "Bearer "+s.user.Token)
	text := func(number protowire.Number, value string) []byte {
		return protowire.AppendString(protowire.AppendTag(nil, number, protowire.BytesType), value)
	}
	inside := func(number protowire.Number, message []byte) []byte { return text(number, string(message)) }
	good := bytes.Join([][]byte{text(1, "a"), text(2, "b"), text(4, "c")}, nil)
	for _, x := range []struct {
		name, op string
		as       Header
		message  []byte
		want     Want
	}{
		{"as it should be", "UpdateMyProfile", auth, good, ok},
		{"not UTF-8", "UpdateMyProfile", auth, append(text(1, "a\xff"), good[3:]...), invalid("firstName")},
		{"half of a surrogate pair", "UpdateMyProfile", auth, append(text(2, "\xed\xa0\x80"), good...),
			invalid("lastName")},
		{"overlong", "UpdateMyProfile", auth, append(good, text(5, "\xc0\x80")...), invalid("preferredLanguage")},
		{"several not UTF-8", "UpdateMyProfile", auth, bytes.Join([][]byte{text(1, "\xff"), text(3, "\xfe")}, nil),
			invalid("firstName", "nickName")},
		{"not UTF-8, deep inside", "SetupOrganization", header("authorization", "Bearer "+w.root.Token),
			inside(2, inside(2, text(1, "\xff"))), invalid("human.profile.firstName")},
		{"not UTF-8 in a list", "SetupOrganization", header("authorization", "Bearer "+w.root.Token),
			append(text(3, "ORG_OWNER"), text(3, "\xff")...), invalid("roles[1]")},
		{"not UTF-8 in a password", "CreateSession", nil, append(text(1, "a"), text(2, "\xff")...),
			invalid("password")},
		{"not UTF-8 in an identifier", "GetUser", auth, text(1, "\xff"), invalid("userId")},
		{"NUL in an identifier", "GetUser", header("authorization", "Bearer "+s.owner.Token), text(1, "a\x00"), noUser},
		{"NUL in an identifier without permission", "GetUser", auth, text(1, "a\x00"), permissionDenied},
		{"NUL in an identifier without a credential", "GetUser", nil, text(1, "a\x00"), unauthenticated},
		{"NUL in an identifier, and in a text", "SetUserPassword", auth, append(text(1, "a\x00"), text(2, "\x00")...),
			invalid("password")},
		{"cut off", "UpdateMyProfile", auth, good[:len(good)-1], invalid("")},
		{"garbage", "UpdateMyProfile", auth, []byte("garbage"), invalid("")},
		{"a number where a text should be", "UpdateMyProfile", auth, append([]byte{0x08, 0x01}, good[3:]...),
			invalid("firstName")},
		{"unknown fields are skipped", "UpdateMyProfile", auth, append(good, text(1000, "x")...), ok},
		{"not UTF-8 without a credential", "UpdateMyProfile", nil, text(1, "\xff"), unauthenticated},
	} {
		t.Run(x.name, func(t *testing.T) {
			op := operationNamed(t, x.op)
			a, err := w.grpc.invoke(t.Context(), op, x.message, x.as, grpc.ForceCodec(rawCodec{}))
			if err != nil {
				t.Fatal(err)
			}
			a.wire = "grpc"
			web := w.webFrame(t, op, x.as, frame(x.message))
			for _, a := range []*Answer{a, web} {
				a.mustBe(t, x.want)
				w.verify(t, op, a)
				w.remember(op, a)
			}
			same(t, "summary", web.summary(), a.summary())
		})
	}
	op := operationNamed(t, "UpdateMyProfile")
	for name, body := range map[string][]byte{
		"no message": nil, "half a frame": frame(good)[:3], "less than promised": frame(good)[:8],
		"two messages":                  append(frame(good), frame(good)...),
		"compressed without saying how": append([]byte{1}, frame(good)[1:]...),
		"unknown flags":                 append([]byte{2}, frame(good)[1:]...),
	} {
		t.Run(name, func(t *testing.T) {
			a := w.webFrame(t, op, auth, body)
			w.verify(t, op, a)
			a.mustBe(t, invalid(""))
		})
	}
	t.Run("unknown methods", func(t *testing.T) {
		for _, method := range []string{"/signet.v1.UserService/Nothing", "/signet.v1.NoService/GetMyUser",
			"/signet.v2.UserService/GetMyUser", "/x"} {
			err := w.grpc.conn.Invoke(t.Context(), method, []byte{}, nil, grpc.ForceCodec(rawCodec{}))
			if !strings.Contains(fmt.Sprint(err), codes.Unimplemented.String()) {
				t.Errorf("%s: %v", method, err)
			}
		}
	})
}

// frame wraps a message the way gRPC does.
func frame(message []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
}

// webFrame posts the body of a gRPC-Web request and reads the frames of the answer.
func (w *World) webFrame(t *testing.T, op *operation, h Header, body []byte) *Answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.rest.base+"/"+op.procedure(),
		bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/grpc-web+proto")
	for k, v := range h {
		req.Header[http.CanonicalHeaderKey(k)] = v
	}
	w.requests.Add(1)
	resp, err := w.rest.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v %s", err, resp.Status)
	}
	a := &Answer{wire: "grpc-web", header: resp.Header}
	for len(raw) >= 5 {
		size := int(binary.BigEndian.Uint32(raw[1:])) + 5
		content := raw[5:size]
		switch raw[0] {
		case 0:
			a.message = op.output.New().Interface()
			if err := proto.Unmarshal(content, a.message); err != nil {
				t.Fatal(err)
			}
		case 0x80:
			for line := range strings.SplitSeq(strings.TrimSpace(string(content)), "\r\n") {
				if packed, is := strings.CutPrefix(line, "grpc-status-details-bin: "); is {
					st, err := base64.RawStdEncoding.DecodeString(packed)
					a.status = &spb.Status{}
					if err != nil || proto.Unmarshal(st, a.status) != nil {
						t.Fatalf("details: %s", packed)
					}
				}
			}
		}
		raw = raw[size:]
	}
	if a.message == nil && a.status == nil {
		t.Fatal("neither a message nor a status with details")
	}
	return a
}
