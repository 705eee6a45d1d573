package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/graphd/graphd/internal/sharedtest"
)

// Records name dictionary 1: a changed one makes them unreadable.
func TestShippedDictionaryNeverChanges(t *testing.T) {
	sum := sha256.Sum256(shipped1)
	if got := hex.EncodeToString(sum[:]); got != "591fbc9ecd52cdfa74bdc822330cc7229f894410a798d17a71fc8a6baef14c0f" {
		t.Errorf("its digest is %s: ship another one beside it instead", got)
	}
}

// wordy is a payload of a kind of text that no shipped dictionary knows.
func wordy(style, n uint64) []byte {
	r := rand.New(rand.NewPCG(style, 1))
	var b strings.Builder
	for range 60 {
		fmt.Fprintf(&b, `"%x":`, r.Uint64())
	}
	fmt.Fprintf(&b, "%d", n)
	return []byte(b.String())
}

func wordyEntry(style, n uint64) Entry {
	e := fresh(style<<32 | n)
	e.Payload = wordy(style, n)
	return e
}

func waitForDictionaries(t *testing.T, l *Ledger, n int) {
	t.Helper()
	for range 1000 {
		if l.dicts.count() >= n {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
	t.Fatalf("there are %d dictionaries, want %d", l.dicts.count(), n)
}

func dictionariesUsed(t *testing.T, l *Ledger) (used map[uint32]int, size int) {
	t.Helper()
	used = map[uint32]int{}
	it, err := l.db.NewIter(family(logFamily))
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for it.First(); it.Valid(); it.Next() {
		r, err := openRecord(it.Value(), binary.BigEndian.Uint64(it.Key()[1:]))
		if err != nil {
			t.Fatal(err)
		}
		used[r.dictionary]++
		size = len(r.packed)
	}
	return used, size
}

// What was written with one dictionary is read after others were learned, in
// this process and in the next.
func TestDictionariesAreLearned(t *testing.T) {
	o := small()
	l := open(t, t.TempDir(), o)
	n := uint64(0)
	var want [][]byte
	send := func(style uint64) {
		t.Helper()
		e := wordyEntry(style, n)
		n++
		want = append(want, e.Payload)
		accept(t, l, e)
	}
	send(1)
	_, unlearned := dictionariesUsed(t, l)
	for range o.learnFrom {
		send(1)
	}
	waitForDictionaries(t, l, 2)
	send(1)
	used, learned := dictionariesUsed(t, l)
	if used[1] == 0 || used[lastShipped+1] == 0 {
		t.Errorf("records use %v", used)
	}
	if learned*5 > unlearned {
		t.Errorf("a payload takes %d bytes with the shipped dictionary and %d with the learned one", unlearned, learned)
	}
	l = reopen(t, l)
	if l.dicts.current.Load().id != lastShipped+1 {
		t.Errorf("reopened, it uses dictionary %d", l.dicts.current.Load().id)
	}
	for range o.learnFrom + 1 {
		send(2)
	}
	waitForDictionaries(t, l, 3)
	send(2)
	l = reopen(t, l)
	for range 2 * o.learnFrom {
		send(2)
	}
	time.Sleep(50 * time.Millisecond)
	if n := l.dicts.count(); n != 3 {
		t.Errorf("a dictionary that wins nothing was kept: there are %d", n)
	}
	for i, r := range readAll(t, l) {
		if !bytes.Equal(r.Payload, want[i]) {
			t.Fatalf("record %d is %q", r.Sequence, r.Payload)
		}
	}
	if used, _ := dictionariesUsed(t, l); len(used) != 3 {
		t.Errorf("records use %v", used)
	}
}

func TestPayloadSizes(t *testing.T) {
	l := open(t, t.TempDir(), small())
	r := rand.New(rand.NewPCG(1, 1))
	var want [][]byte
	for i, size := range []int{0, 1, 7, 100, 4 << 10, 70 << 10, 3 << 20} {
		random := make([]byte, size)
		for j := range random {
			random[j] = byte(r.Uint32())
		}
		for j, payload := range [][]byte{random, bytes.Repeat([]byte("ab"), size/2)} {
			e := fresh(uint64(2*i + j))
			e.Payload = payload
			accept(t, l, e)
			want = append(want, payload)
		}
	}
	l = reopen(t, l)
	for i, r := range readAll(t, l) {
		if !bytes.Equal(r.Payload, want[i]) {
			t.Errorf("record %d has %d bytes, want %d", r.Sequence, len(r.Payload), len(want[i]))
		}
	}
}

// How well bodies of real producers are compressed.
func TestRecordedStreams(t *testing.T) {
	l := open(t, t.TempDir(), Options{DiskReserve: -1, learnFrom: 128})
	var raw, packed, n int
	var bodies [][]byte
	for _, s := range sharedtest.RecordedStreams(t) {
		for _, d := range s.Deliveries {
			bodies = append(bodies, d.Body)
		}
	}
	rand.New(rand.NewPCG(2, 2)).Shuffle(len(bodies), func(i, j int) { bodies[i], bodies[j] = bodies[j], bodies[i] })
	for i, b := range bodies {
		e := fresh(uint64(i))
		e.Payload = b
		accept(t, l, e)
		if i == 200 {
			waitForDictionaries(t, l, 2)
		}
	}
	it, err := l.db.NewIter(family(logFamily))
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for it.First(); it.Valid(); it.Next() {
		if n++; n > 250 {
			raw, packed = raw+len(bodies[n-1]), packed+len(it.Value())
		}
	}
	t.Logf("%d bodies of %d bytes take %d each in the log", n-250, raw/(n-250), packed/(n-250))
	if packed*8 > raw {
		t.Errorf("%d bytes became %d", raw, packed)
	}
}
