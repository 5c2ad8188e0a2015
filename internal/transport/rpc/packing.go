package rpc

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/signet-idm/signet/internal/base/packing"
)

// minPacked is the size from which answers are compressed: smaller ones fit into one packet anyway.
const minPacked = 1400

// packers lends compressors, each of which takes up 0.8 MB. Lists wait for each other (see shares) and are compressed in
// the slot that they have. Shorter reads do not, so what finds mostPackers at work stays as it is.
var packers = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // there is such a level
	}
	return w
}}

var packersAtWork atomic.Int32

const mostPackers = 16

// packs tells whether answers of the operation are compressed for clients that accept it: those of reads that are not of
// one object. No read answers with a secret, see TestNoReadAnswersWithASecret. That matters: the length of a compressed
// answer tells whether a part of it is repeated elsewhere in it. Answers with an entity tag stay as they are, since the
// tag would have to differ.
func (op *operation) packs() bool { return op.reads && !op.streams && len(op.details) == 0 }

// compress adds content to buf, compressed, unless too many others do the same.
func compress(buf *bytes.Buffer, content ...[]byte) bool {
	defer packersAtWork.Add(-1)
	if packersAtWork.Add(1) > mostPackers {
		return false
	}
	w := packers.Get().(*gzip.Writer)
	w.Reset(buf)
	for _, part := range content {
		_, _ = w.Write(part) // a buffer takes everything
	}
	_ = w.Close()
	w.Reset(nil)
	packers.Put(w)
	return true
}

// packBody compresses the body of an answer, if the client accepts it. Nil: it stays as it is.
func (c *Call) packBody(body []byte) *bytes.Buffer {
	if !c.op.packs() || len(body) < minPacked || packing.Choose(c.Request.Header, packing.Gzip) == "" {
		return nil
	}
	buf := buffers.Get()
	if !compress(buf, body, []byte("\n")) {
		buffers.Put(buf)
		return nil
	}
	return buf
}

// packFrame compresses the message of an answer, if the client accepts it. Browsers cannot unpack messages of gRPC-Web,
// but everything that comes over HTTP: for them it compresses the whole body, the trailer included.
func (c *Call) packFrame(buf *bytes.Buffer) {
	if !c.op.packs() || buf.Len() < minPacked {
		return
	}
	packed := buffers.Get()
	defer buffers.Put(packed)
	switch {
	case c.Protocol == "grpc-web" && !c.text && packing.Choose(c.Request.Header, packing.Gzip) != "":
		message := buf.Len()
		if appendTrailer(buf, c.trailer(nil)); !compress(packed, buf.Bytes()) {
			buf.Truncate(message)
			return
		}
		c.coding = packing.Gzip
	case acceptsGzipFrames(c.Request.Header):
		packed.Write(make([]byte, head))
		if !compress(packed, buf.Bytes()[head:]) {
			return
		}
		frame := packed.Bytes()
		frame[0] = flagCompressed
		binary.BigEndian.PutUint32(frame[1:], uint32(len(frame)-head))
		c.frameCoding = packing.Gzip
	default:
		return
	}
	*buf, *packed = *packed, *buf
}

// acceptsGzipFrames reads the header of gRPC, a list of names.
func acceptsGzipFrames(h http.Header) bool {
	for _, line := range h["Grpc-Accept-Encoding"] {
		for name := range strings.SplitSeq(line, ",") {
			if strings.TrimSpace(name) == packing.Gzip {
				return true
			}
		}
	}
	return false
}

// varies says that the answer depends on the coding that the client accepts.
func (c *Call) varies() {
	if h := c.Header(); c.op != nil && c.op.packs() && !slices.Contains(h["Vary"], "Accept-Encoding") {
		h["Vary"] = append(h["Vary"], "Accept-Encoding")
	}
}
