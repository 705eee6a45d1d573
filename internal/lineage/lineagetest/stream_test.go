package lineagetest

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestStreamIsAFunctionOfItsSeed(t *testing.T) {
	for seed := range uint64(50) {
		a := Stream(rand.New(rand.NewPCG(seed, 0)), 40)
		b := Stream(rand.New(rand.NewPCG(seed, 0)), 40)
		if !slices.EqualFunc(a, b, bytes.Equal) {
			t.Errorf("seed %d makes two streams", seed)
		}
		if len(a) == 0 || len(a) > 40 {
			t.Errorf("seed %d: %d events, want 1 to 40", seed, len(a))
		}
	}
}
