//go:build cost

package strict_test

import (
	"testing"

	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/signet-idm/signet/internal/transport/strict"
	"github.com/signet-idm/signet/test/costtest"
)

// No operation's request costs much to read, whatever is in which of its fields. What is new is covered without anyone
// remembering.
func TestNoBodyCostsMuchToRead(t *testing.T) {
	const body, most = 256 << 10, costtest.Most / 4 // a quarter of what may come, for a quarter of the cost
	operations := costtest.Operations()
	if len(operations) < 100 {
		t.Fatalf("only %d operations", len(operations))
	}
	for i, op := range operations {
		input, err := protoregistry.GlobalTypes.FindMessageByName(op.Method.Input().FullName())
		if err != nil {
			t.Fatal(err)
		}
		read := func(body []byte) func() {
			return func() { strict.UnmarshalJSON(body, input.New().Interface()) }
		}
		for j, f := range costtest.Fields(op.Method.Input()) {
			name := string(op.Method.Name()) + " with many " + f.String()
			costtest.Grows(t, name, body, most, func(size int) func() { return read(f.Crowd(size)) })
			// The reader knows nothing of what texts mean: one alphabet a field is enough.
			a := costtest.Alphabets[(i+j)%len(costtest.Alphabets)]
			costtest.Grows(t, string(op.Method.Name())+" with "+a.Name+" as "+f.String(), body, most,
				func(size int) func() { return read(f.Body(a.Text(size))) })
		}
		if i > 2 {
			continue
		}
		for name := range costtest.Odd(1) {
			costtest.Grows(t, string(op.Method.Name())+": "+name, body, most,
				func(size int) func() { return read(costtest.Odd(size)[name]) })
		}
	}
}
