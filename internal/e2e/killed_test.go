package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
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

// sender sends every event so many times, in an order of its own, each until it is
// acknowledged. It says how many times it was.
func sender(url, seed string) int {
	n, err := strconv.ParseUint(seed, 10, 64)
	if err != nil {
		return 2
	}
	rng := rand.New(rand.NewPCG(n, 1))
	bodies := someEvents(killedEvents)
	order := make([]int, 0, killedEvents*killedTimes)
	for range killedTimes {
		order = append(order, rng.Perm(killedEvents)...)
	}
	client := &http.Client{Timeout: 10 * time.Second}
	end := time.Now().Add(4 * time.Minute)
	acknowledged := 0
	for _, i := range order {
		for {
			status := post(client, url, bodies[i])
			if status == http.StatusCreated {
				acknowledged++
				break
			}
			if status != 0 && status != http.StatusServiceUnavailable || time.Now().After(end) {
				fmt.Fprintf(os.Stderr, "event %d: status %d\n", i, status)
				return 1
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	fmt.Println(acknowledged)
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
	var senders sync.WaitGroup
	acknowledged := make([]int, killedSenders)
	for i := range killedSenders {
		senders.Go(func() {
			cmd := exec.Command(self)
			cmd.Env = append(os.Environ(), senderURL+"="+server.url, senderSeed+"="+strconv.Itoa(i))
			cmd.Stderr = os.Stderr
			out, err := cmd.Output()
			if err == nil {
				acknowledged[i], err = strconv.Atoi(strings.TrimSpace(string(out)))
			}
			if err != nil {
				t.Errorf("sender %d: %v", i, err)
			}
		})
	}
	for range kills {
		time.Sleep(100*time.Millisecond + rand.N(500*time.Millisecond))
		server.kill()
		server = start(t, binary, address, dir)
	}
	senders.Wait()
	for i, n := range acknowledged {
		if n != killedEvents*killedTimes {
			t.Errorf("sender %d had %d deliveries acknowledged, want %d", i, n, killedEvents*killedTimes)
		}
	}
	c := quiet(t, server.url)
	if c.Events != killedEvents || c.Deliveries["new"] != killedEvents || c.Log.Last != killedEvents {
		t.Errorf("%d events, %d new deliveries and %d bodies in the log, want %d of each", c.Events, c.Deliveries["new"], c.Log.Last, killedEvents)
	}
	if sent := killedEvents * killedTimes * killedSenders; c.Deliveries["retry"] == 0 || c.Deliveries["equivalent"]+c.Deliveries["collision"]+c.Deliveries["redescribed"] > 0 {
		t.Errorf("deliveries %v, want nothing but new ones and retries, of %d acknowledged", c.Deliveries, sent)
	}
	sameAsFold(t, binary, server.url, someEvents(killedEvents))
	t.Logf("deliveries %v", c.Deliveries)
}
