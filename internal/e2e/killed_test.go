package e2e

import (
	"bufio"
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// What a sender finds in its environment.
const (
	senderURL  = "GRAPHD_TEST_SENDER_URL"
	senderSeed = "GRAPHD_TEST_SENDER_SEED"
)

const (
	killedEvents, killedTimes, killedSenders, kills = 100, 200, 8, 30
)

// TestMain lets the test's binary be a sender, a process of its own.
func TestMain(m *testing.M) {
	if url := os.Getenv(senderURL); url != "" {
		os.Exit(sender(url, os.Getenv(senderSeed)))
	}
	os.Exit(m.Run())
}

// order is the deliveries of a sender: each event so many times, in an order of its
// own in which new events come all the time.
func order(rng *rand.Rand) []int {
	type delivery struct {
		at    float64
		event int
	}
	var all []delivery
	for event := range killedEvents {
		first := float64(event) / killedEvents
		for range killedTimes {
			all = append(all, delivery{first + rng.Float64()*(1-first), event})
		}
	}
	slices.SortFunc(all, func(a, b delivery) int { return cmp.Compare(a.at, b.at) })
	events := make([]int, len(all))
	for i := range all {
		events[i] = all[i].event
	}
	return events
}

// told is how many acknowledgements a sender has between two that it tells of.
const told = 100

// sender sends every event so many times, each until it is acknowledged, and writes
// a line now and then.
func sender(url, seed string) int {
	n, err := strconv.ParseUint(seed, 10, 64)
	if err != nil {
		return 2
	}
	bodies := someEvents(killedEvents)
	client := &http.Client{Timeout: 10 * time.Second}
	end := time.Now().Add(4 * time.Minute)
	for i, event := range order(rand.New(rand.NewPCG(n, 1))) {
		for {
			status := post(client, url, bodies[event])
			if status == http.StatusCreated {
				break
			}
			if status != 0 && status != http.StatusServiceUnavailable || time.Now().After(end) {
				fmt.Fprintf(os.Stderr, "event %d: status %d\n", event, status)
				return 1
			}
			time.Sleep(10 * time.Millisecond)
		}
		if (i+1)%told == 0 {
			fmt.Println(i + 1)
		}
	}
	return 0
}

// TestKilledServer kills graphd again and again while processes send it the same
// events.
func TestKilledServer(t *testing.T) {
	binary := build(t)
	address, dir := freePort(t), t.TempDir()
	server := start(t, binary, address, dir)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const sent = killedEvents * killedTimes * killedSenders
	acknowledged := make(chan int, sent/told)
	var senders sync.WaitGroup
	for i := range killedSenders {
		senders.Go(func() {
			cmd := exec.Command(self)
			cmd.Env = append(os.Environ(), senderURL+"="+server.url, senderSeed+"="+strconv.Itoa(i))
			cmd.Stderr = os.Stderr
			out, err := cmd.StdoutPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Errorf("sender %d: %v", i, err)
				return
			}
			for lines := bufio.NewScanner(out); lines.Scan(); {
				acknowledged <- told
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("sender %d: %v", i, err)
			}
		})
	}
	go func() {
		senders.Wait()
		close(acknowledged)
	}()
	total, killed := 0, 0
	for n := range acknowledged {
		total += n
		if killed < kills && total >= (killed+1)*sent/(kills+1) {
			time.Sleep(rand.N(20 * time.Millisecond))
			server.kill()
			killed++
			server = start(t, binary, address, dir)
		}
	}
	if total != sent || killed != kills {
		t.Errorf("%d deliveries were acknowledged and the server killed %d times, want %d and %d", total, killed, sent, kills)
	}
	c := quiet(t, server.url)
	if c.Events != killedEvents || c.Deliveries["new"] != killedEvents || c.Log.Last != killedEvents {
		t.Errorf("%d events, %d new deliveries and %d bodies in the log, want %d of each", c.Events, c.Deliveries["new"], c.Log.Last, killedEvents)
	}
	// A crash costs retries that were counted and not written yet.
	if retries := c.Deliveries["retry"]; retries < sent/2 || retries > sent+kills*killedSenders {
		t.Errorf("%d retries are counted of %d deliveries", retries, sent)
	}
	if c.Deliveries["equivalent"]+c.Deliveries["collision"]+c.Deliveries["redescribed"] > 0 {
		t.Errorf("deliveries %v, want nothing but new ones and retries", c.Deliveries)
	}
	sameAsFold(t, binary, server.url, someEvents(killedEvents))
	t.Logf("deliveries %v", c.Deliveries)
}
