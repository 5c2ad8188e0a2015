package rpc

import (
	"bytes"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"

	"buf.build/go/protovalidate"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/rpc/strictjson"
)

// TestListsAreNotDecodedBeyondTheirLimit: an empty element has two bytes on the wire and a hundred times that in memory.
func TestListsAreNotDecodedBeyondTheirLimit(t *testing.T) {
	const many = 1_000_000
	l := newLab(t)
	for name, c := range map[string]struct {
		path, contentType string
		body              []byte
	}{
		"REST":     {"/v1/users/_import", "application/json", []byte(`{"users":[{}` + strings.Repeat(`,{}`, many) + `]}`)},
		"gRPC":     {"/signet.v1.UserService/ImportUsers", "application/grpc", frameOf(0, bytes.Repeat([]byte{0x12, 0}, many))},
		"gRPC-Web": {"/signet.v1.UserService/ImportUsers", "application/grpc-web+proto", frameOf(0, bytes.Repeat([]byte{0x12, 0}, many))},
	} {
		r, err := http.NewRequest("POST", "http://localhost"+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header = bearerOf("owner", "content-type", c.contentType)
		r.RemoteAddr = "127.0.0.1:1234"
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(c.body)), int64(len(c.body))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		l.handler.ServeHTTP(&sink{h: http.Header{}}, r)
		runtime.ReadMemStats(&after)
		if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 40 {
			t.Errorf("%s took %d MiB", name, took)
		}
	}
	var req signetv1.ImportUsersRequest
	for n, want := range map[int]bool{1000: true, 1001: false} {
		body := `{"users":[{}` + strings.Repeat(`,{}`, n-1) + `]}`
		found, complete := strictjson.Unmarshal([]byte(body), &req)
		if complete != want || len(req.GetUsers()) > 1000 || !want && (len(found) != 1 || found[0].Field != "users" || found[0].Message != "must have at most 1000 elements") {
			t.Errorf("%d elements: %v, %d are read", n, found, len(req.GetUsers()))
		}
	}
}

func TestARangeIsSaidInFewWords(t *testing.T) {
	validator, err := protovalidate.New()
	if err != nil {
		t.Fatal(err)
	}
	found, _, err := rules{validator}.check(&signetv1.SetInstallationPolicyRequest{Policy: &signetv1.Policy{PasswordMinLength: 73, NetworkWaitSeconds: 59, SessionSeconds: 300}})
	want := []errs.Violation{{Field: "policy.passwordMinLength", Message: "must be from 0 to 72"}, {Field: "policy.networkWaitSeconds", Message: "must be from 60 to 3600"}}
	if err != nil || !slices.Equal(found, want) {
		t.Errorf("got %v, %v", found, err)
	}
}
