package program

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strconv"
	"testing"
	"time"
)

// mostKiB is what the program may have taken at any time.
const mostKiB = 300 << 10

// othersAreServed does what other people do, with bodies and without.
func othersAreServed(t *testing.T, c *client, admin firstAdmin) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for i := range 20 {
		if status, answer, err := c.do(ctx, "GET", "/v1/users/me", nil); status != 200 {
			t.Fatalf("a read beside: %d, %v, %v", status, answer, err)
		}
		if status, answer, err := c.do(ctx, "POST", "/v1/users/service",
			object{"userName": fmt.Sprint("beside-", time.Now().UnixNano(), i), "name": "Beside"}); status != 200 {
			t.Fatalf("a change beside: %d, %v, %v", status, answer, err)
		}
	}
	c.signIn(t, admin.LoginName, admin.Password)
}

// TestBodiesTakeNoMemoryBeforeTheyArrive: whoever promises a megabyte without sending it, or stops half-way, takes up
// next to nothing. What arrives is bounded for each network, and for all of them together.
func TestBodiesTakeNoMemoryBeforeTheyArrive(t *testing.T) {
	const connections, streams, plain = 16, 250, 1000
	for _, attack := range []struct {
		name string
		sent int // bytes of each body that do arrive
	}{
		{"promised only", 0},
		{"stopped half-way", 16 << 10}, // more than a network may have on its way
	} {
		t.Run(attack.name, func(t *testing.T) {
			eachEngine(t, func(t *testing.T, s *site) {
				p := s.start(t)
				admin := s.admin(t)
				c := newClient(t, p, admin.Token)
				part := bytes.Repeat([]byte(" "), attack.sent)
				for range connections {
					f := dialFrames(t, p)
					for i := range streams {
						id := uint32(2*i + 1)
						if err := f.request(id,
							post("/v1/sessions", "content-type", "application/json", "content-length",
								strconv.Itoa(1<<20))...); err != nil {
							t.Fatal(err)
						}
						if len(part) > 0 {
							if err := f.send(id, false, part); err != nil {
								t.Fatal(err)
							}
						}
					}
				}
				othersAreServed(t, c, admin)
				for range plain {
					conn, err := (&net.Dialer{LocalAddr: elsewhere}).Dial("tcp", p.listen)
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { conn.Close() })
					if _, err := fmt.Fprintf(conn,
						"POST /v1/sessions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s", 1<<20, part); err != nil {
						t.Fatal(err)
					}
				}
				othersAreServed(t, c, admin)
				peak := statusKiB(t, p, "VmHWM")
				t.Logf("at most %.0f MiB", float64(peak)/1024)
				if peak > mostKiB {
					t.Errorf("it took %d MiB", peak>>10)
				}
			})
		})
	}
}

// TestWhoHoldsThePermissionNowhereSendsNoLargeBodies: the largest requests are not even read from people who could not
// do it anywhere.
func TestWhoHoldsThePermissionNowhereSendsNoLargeBodies(t *testing.T) {
	const bodies = 100
	eachEngine(t, func(t *testing.T, s *site) {
		p := s.start(t)
		admin := s.admin(t)
		c := newClient(t, p, admin.Token)
		c.want(t, 200, "POST", "/v1/users/human", object{"userName": "nobody", "password": "a password of nobody",
			"profile": object{"firstName": "No", "lastName": "Body"},
			"email":   object{"email": "nobody@example.com", "isEmailVerified": true}})
		token := c.with("").signIn(t, "nobody", "a password of nobody")
		before := statusKiB(t, p, "VmHWM")
		f := dialFrames(t, p)
		for i := range bodies {
			if err := f.request(uint32(2*i+1),
				post("/v1/users/_import", "content-type", "application/json", "authorization", "Bearer "+token,
					"content-length", strconv.Itoa(4<<20))...); err != nil {
				t.Fatal(err)
			}
		}
		othersAreServed(t, c, admin)
		f.awaitEnds(t, bodies)
		for id, how := range f.ended {
			if f.status[id] != "403" {
				t.Fatalf("one ended with %s", how)
			}
		}
		if grown := statusKiB(t, p, "VmHWM") - before; grown > 40<<10 {
			t.Errorf("they took %d MiB", grown>>10)
		}
	})
}
