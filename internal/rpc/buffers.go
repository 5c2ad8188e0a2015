package rpc

import (
	"bytes"
	"sync"
)

// bufferPool lends buffers for the bytes of requests and answers.
type bufferPool struct{ pool sync.Pool }

var buffers = bufferPool{sync.Pool{New: func() any { return new(bytes.Buffer) }}}

func (p *bufferPool) get() *bytes.Buffer { return p.pool.Get().(*bytes.Buffer) }

// put takes a buffer back, wiped because requests hold passwords. Unusually large ones are not kept.
func (p *bufferPool) put(b *bytes.Buffer) {
	if b.Cap() > 64<<10 {
		return
	}
	b.Reset()
	clear(b.AvailableBuffer()[:b.Cap()])
	p.pool.Put(b)
}
