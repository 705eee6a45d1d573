package ledger

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/graphd/graphd/internal/fact"
)

// The machine loses its power at random moments while senders run: what was not
// synced is lost, or not, block by block.
func TestPowerLoss(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			entries := stream(r, 6000)
			s := newSent(entries)
			fs := vfs.NewCrashableMem()
			for life := range 4 {
				o := small()
				o.FS = fs
				l, err := Open("ledger", o)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				for i := range 8 {
					part := entries[(life*8+i)*len(entries)/32 : (life*8+i+1)*len(entries)/32]
					wg.Go(func() { sendUntil(ctx, t, l, s, part) })
				}
				time.Sleep(time.Duration(r.IntN(150)) * time.Millisecond)
				// First what is acknowledged, then the crash: all of it must be there.
				acknowledged := s.acknowledged()
				crashed := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: r.IntN(101), RNG: rand.New(rand.NewPCG(seed, uint64(life)))})
				cancel()
				wg.Wait()
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
				fs = crashed
				s.forget(acknowledged)
				o.FS = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
				s.check(t, open(t, "ledger", o), acknowledged)
				t.Logf("life %d: %d bodies acknowledged", life, len(acknowledged))
			}
		})
	}
}

// forget leaves only what was acknowledged before the crash: what came after it
// happened in a world that is gone.
func (s *sent) forget(acknowledged map[fact.ID]Verdict) { s.verdicts = acknowledged }

func sendUntil(ctx context.Context, t *testing.T, l *Ledger, s *sent, part []Entry) {
	for len(part) > 0 {
		n := min(len(part), 3)
		verdicts, err := l.Accept(ctx, part[:n])
		if errors.Is(err, context.Canceled) {
			return
		} else if err != nil {
			t.Error(err)
			return
		}
		s.acknowledge(part[:n], verdicts)
		part = part[n:]
	}
}

// killedDir makes this test binary a sender that is killed.
const killedDir = "GRAPHD_TEST_LEDGER_KILLED_DIR"

// killedEntry is the n-th delivery of a sender in one life. Each third is a body
// of an earlier life again.
func killedEntry(life, sender, n uint64) Entry {
	if n%3 == 2 && life > 0 {
		life, n = life-1, n-1
	}
	event := life<<40 | sender<<32 | n/2
	return said(event, n%2*(n%5), n%4, life<<40|sender<<32|n)
}

// killedEntryOf makes the entry that has this payload.
func killedEntryOf(t *testing.T, payload []byte) Entry {
	t.Helper()
	var p struct{ N uint64 }
	if err := json.Unmarshal(payload, &p); err != nil {
		t.Fatal(err)
	}
	life, sender, n := p.N>>40, p.N>>32&0xff, p.N&0xffffffff
	if life > 0 && n%3 == 2 {
		t.Fatalf("life %d never sent body %d", life, n)
	}
	return killedEntry(life, sender, n)
}

const killedSenders = 4

func TestMain(m *testing.M) {
	for name, run := range map[string]func(string) error{killedDir: sendUntilKilled, fillDir: fillUntilKilled} {
		if dir := os.Getenv(name); dir != "" {
			fmt.Fprintln(os.Stderr, run(dir))
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// sendUntilKilled writes a line for each entry before it is sent and one when it
// is acknowledged.
func sendUntilKilled(dir string) error {
	life, err := strconv.ParseUint(os.Getenv("GRAPHD_TEST_LEDGER_LIFE"), 10, 64)
	if err != nil {
		return err
	}
	o := small()
	o.memTable = 1 << 20
	l, err := Open(dir, o)
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	for sender := range uint64(killedSenders) {
		go func() {
			for n := uint64(0); ; n++ {
				verdicts, err := l.Accept(context.Background(), []Entry{killedEntry(life, sender, n)})
				if err != nil {
					failed <- err
					return
				}
				// One write each, so that a line is whole or absent.
				v := verdicts[0]
				if _, err := os.Stdout.WriteString(fmt.Sprintf("%d %d %s %d .\n", sender, n, v.Outcome, v.Sequence)); err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	return <-failed
}

func TestKilledProcess(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: no process is killed")
	}
	dir := t.TempDir()
	s := newSent(nil)
	for life := range uint64(10) {
		acknowledged := runAndKill(t, dir, life)
		for _, a := range acknowledged {
			e := killedEntry(life, a.sender, a.n)
			if _, known := s.verdicts[e.Body]; !known {
				s.verdicts[e.Body] = Verdict{Outcome: a.outcome, Sequence: a.sequence}
			} else if a.outcome != fact.Retry {
				t.Fatalf("life %d: a body acknowledged before is %s", life, a.outcome)
			}
		}
		began := time.Now()
		l, err := Open(dir, small())
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("life %d: %d acknowledged, the log ends with %d, opened in %v", life, len(acknowledged), l.Last(), time.Since(began).Round(time.Millisecond))
		s.checkKilled(t, l)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

type acknowledgement struct {
	sender, n, sequence uint64
	outcome             fact.Outcome
}

func senderCommand(t *testing.T, dir string, life uint64) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), killedDir+"="+dir, fmt.Sprintf("GRAPHD_TEST_LEDGER_LIFE=%d", life))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}

// startSender starts a process that has the ledger in dir open when it returns.
func startSender(t *testing.T, dir string, life uint64) (end func()) {
	t.Helper()
	cmd, lines := senderCommand(t, dir, life)
	if !lines.Scan() {
		t.Error("it sends nothing")
	}
	return func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

func runAndKill(t *testing.T, dir string, life uint64) (list []acknowledgement) {
	t.Helper()
	cmd, lines := senderCommand(t, dir, life)
	kill := time.AfterFunc(time.Duration(50+rand.IntN(400))*time.Millisecond, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) != 5 {
			break
		}
		var a acknowledgement
		if _, err := fmt.Sscanf(lines.Text(), "%d %d %s %d", &a.sender, &a.n, &a.outcome, &a.sequence); err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		list = append(list, a)
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("the sender ended by itself: %v", err)
	}
	return list
}

// checkKilled compares the log with what the killed processes said.
func (s *sent) checkKilled(t *testing.T, l *Ledger) {
	t.Helper()
	m := newModel()
	records := readAll(t, l)
	if err := totalsFit(l, records); err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		e := killedEntryOf(t, r.Payload)
		if e.Body != r.Body || string(e.Payload) != string(r.Payload) {
			t.Fatalf("record %d was never sent", r.Sequence)
		}
		if v := m.accept(&e); v.Outcome != r.Outcome || v.Sequence != r.Sequence {
			t.Fatalf("record %d is %s; by the log before it, it is %s of %d", r.Sequence, r.Outcome, v.Outcome, v.Sequence)
		}
	}
	for body, v := range s.verdicts {
		kept, ok := m.bodies[body]
		if !ok || kept.Sequence != v.Sequence || v.Outcome != fact.Retry && v.Outcome != kept.Outcome {
			t.Fatalf("acknowledged: %+v, kept: %+v, %v", v, kept, ok)
		}
	}
}
