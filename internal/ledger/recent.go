package ledger

import (
	"encoding/binary"
	"math/bits"
	"sync"
	"unsafe"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/openlineage"
)

// recent remembers the raw digests of the bodies accepted last. It is a table in
// memory: clients send again within seconds or minutes, so it need not be as long
// as the window, nor survive a restart. What it does not know is parsed, and
// found by its body digest.
//
// A digest belongs into one bucket, where it takes the place of the oldest body.
type recent struct {
	buckets []recentBucket
	stripes [64]sync.Mutex

	mu        sync.Mutex
	numbers   map[string]uint32
	producers []string
}

type recentBucket [4]recentBody

type recentBody struct {
	raw                  RawDigest
	sequence             uint64 // 0: none
	event                fact.ID
	firstSeen, eventTime openlineage.Instant
	producer             uint32
	kind                 byte
}

// producersInMemory bounds the names that bodies refer to.
const producersInMemory = 4096

func newRecent(bytes int64) *recent {
	r := &recent{numbers: map[string]uint32{}, producers: []string{otherProducers}}
	if bytes > 0 {
		r.buckets = make([]recentBucket, max(1, bytes/int64(unsafe.Sizeof(recentBucket{}))))
	}
	return r
}

// SeenRaw reports whether a body with this digest was accepted not long ago, and
// if so counts it as one more retry of it and returns what Accept would, or would
// have as long as the window knew it. False says nothing: parse the body and ask
// Accept. It never waits for the disk.
func (l *Ledger) SeenRaw(raw RawDigest) (Verdict, bool) {
	if l.enter() != nil {
		return Verdict{}, false
	}
	defer l.leave()
	b, ok := l.recent.get(raw)
	if !ok {
		return Verdict{}, false
	}
	key := countKey{kind: b.kind, outcome: outcomeCode(fact.Retry), producer: l.recent.producer(b.producer)}
	l.counts.count(hourOf(openlineage.InstantOf(l.opt.Now())), key)
	l.tally.recentHits.Add(1)
	l.nudge()
	return Verdict{
		Outcome: fact.Retry, Event: b.event, Sequence: b.sequence, FirstSeen: b.firstSeen.Time(), FirstEventTime: b.eventTime,
	}, true
}

// remember makes SeenRaw know a body that is on disk.
func (l *Ledger) remember(it *item, v *Verdict) {
	if it.raw == (RawDigest{}) || len(l.recent.buckets) == 0 {
		return
	}
	l.recent.put(&recentBody{
		raw: it.raw, sequence: v.Sequence, event: it.event, firstSeen: openlineage.InstantOf(v.FirstSeen),
		eventTime: v.FirstEventTime, producer: l.recent.number(cutProducer(it.producer)), kind: kindCode(it.kind),
	})
}

func (r *recent) bucket(raw *RawDigest) (*recentBucket, *sync.Mutex) {
	i, _ := bits.Mul64(binary.BigEndian.Uint64(raw[:]), uint64(len(r.buckets)))
	return &r.buckets[i], &r.stripes[i%uint64(len(r.stripes))]
}

func (r *recent) get(raw RawDigest) (recentBody, bool) {
	if raw == (RawDigest{}) || len(r.buckets) == 0 {
		return recentBody{}, false
	}
	bucket, mu := r.bucket(&raw)
	mu.Lock()
	defer mu.Unlock()
	for i := range bucket {
		if bucket[i].raw == raw {
			return bucket[i], true
		}
	}
	return recentBody{}, false
}

func (r *recent) put(b *recentBody) {
	bucket, mu := r.bucket(&b.raw)
	mu.Lock()
	defer mu.Unlock()
	oldest := &bucket[0]
	for i := range bucket {
		if bucket[i].raw == b.raw {
			oldest = &bucket[i]
			break
		}
		if bucket[i].sequence < oldest.sequence {
			oldest = &bucket[i]
		}
	}
	*oldest = *b
}

// number returns a name's number, that of "other" if there are too many.
func (r *recent) number(name string) uint32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, ok := r.numbers[name]
	if !ok && len(r.producers) < producersInMemory {
		n = uint32(len(r.producers))
		r.numbers[name] = n
		r.producers = append(r.producers, name)
	}
	return n
}

func (r *recent) producer(number uint32) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.producers[number]
}

func (r *recent) bytes() int64 { return int64(len(r.buckets)) * int64(unsafe.Sizeof(recentBucket{})) }
