package rpc

import (
	"bytes"
	"sync"
)

// bufferPool lends buffers for the bytes of requests and answers.
type bufferPool struct{ pool sync.Pool }

// buffers are those of the whole program.
var buffers = bufferPool{sync.Pool{New: func() any { return new(bytes.Buffer) }}}

// Get lends a buffer.
func (p *bufferPool) Get() *bytes.Buffer { return p.pool.Get().(*bytes.Buffer) }

// maxKept is the size of buffers that are kept. Most requests and answers need far less, and what is kept after a flood
// of large ones is memory that nobody has asked for.
const maxKept = 16 << 10

// Put takes a buffer back, wiped because requests hold passwords. Unusually large ones are not kept.
func (p *bufferPool) Put(b *bytes.Buffer) {
	if b.Cap() > maxKept {
		return
	}
	b.Reset()
	clear(b.AvailableBuffer()[:b.Cap()])
	p.pool.Put(b)
}
