// Command soak measures a graphd server as a process of its own: it sends events
// over HTTP as clients do, waits until the graph has settled, and says what an
// event cost, tenth by tenth.
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphd/graphd/internal/lineage/lineagetest"
)

func main() {
	graphd := flag.String("graphd", "bin/graphd", "the server's `PATH`")
	events := flag.Int("events", 2_400_000, "how many events to send")
	batch := flag.Int("batch", 1, "events a request; 1 posts each on its own")
	senders := flag.Int("senders", 32, "requests at once")
	dir := flag.String("dir", "", "the data `DIR`; by default a temporary one, removed at the end")
	profile := flag.String("profile", "", "write a CPU profile of the server's last tenth to `FILE`")
	flag.Parse()
	if err := soak(*graphd, *dir, *profile, *events, *batch, *senders); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func soak(graphd, dir, profile string, events, batch, senders int) (err error) {
	if dir == "" {
		if dir, err = os.MkdirTemp("", "graphd-soak-"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	s, err := start(graphd, dir, profile != "")
	if err != nil {
		return err
	}
	defer s.stop()
	fmt.Printf("%d events of %d to %d bytes, %d a request, %d requests at once\n", events, len(lineagetest.LoadEvent(0)), len(lineagetest.LoadEvent(3999)), batch, senders)
	fmt.Println("tenth    events/s  CPU µs/event  rows/event  bytes/event  RSS MB  debt MB  disk MB  settled after s")
	before, err := s.measure()
	if err != nil {
		return err
	}
	first := before
	const tenths = 10
	for tenth := range tenths {
		begin := time.Now()
		from, to := events/tenths*tenth, events/tenths*(tenth+1)
		stop := func() error { return nil }
		if tenth == tenths-1 && profile != "" {
			stop = s.profile(profile)
		}
		if err := s.send(from, to, batch, senders); err != nil {
			return err
		}
		sent := time.Since(begin)
		if err := s.settled(uint64(to)); err != nil {
			return err
		}
		now, err := s.measure()
		if err != nil {
			return err
		}
		report(strconv.Itoa(tenth+1), &before, &now, float64(to-from), sent, time.Since(begin)-sent)
		if err := stop(); err != nil {
			return err
		}
		before = now
	}
	report("all", &first, &before, float64(events), before.at.Sub(first.at), 0)
	return nil
}

func report(name string, from, to *measurement, events float64, sent, settled time.Duration) {
	fmt.Printf("%5s %11.0f %13.0f %11.2f %12.0f %7.0f %8.0f %8.0f %8.1f\n", name, events/sent.Seconds(),
		(to.cpu-from.cpu).Seconds()*1e6/events, (to.rows-from.rows)/events, (to.rowBytes-from.rowBytes)/events,
		to.rss/1e6, to.debt/1e6, to.disk/1e6, settled.Seconds())
}

// server is a graphd that runs.
type server struct {
	cmd    *exec.Cmd
	url    string
	debug  string // where its profiles are, "" if nowhere
	client *http.Client
}

func start(graphd, dir string, profile bool) (*server, error) {
	cmd := exec.Command(graphd, "serve", "--listen", "127.0.0.1:0", "--data", filepath.Join(dir, "data"), "--log-level", "warn")
	cmd.Stderr = os.Stderr
	if profile {
		cmd.Args = append(cmd.Args, "--profile-listen", "127.0.0.1:0")
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{cmd: cmd, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, url, ok := strings.Cut(lines.Text(), "profiles "); ok {
			s.debug = url
		}
		if _, url, ok := strings.Cut(lines.Text(), "serves "); ok {
			s.url = url
			go io.Copy(io.Discard, out)
			return s, nil
		}
	}
	return nil, errors.Join(errors.New("the server did not start"), lines.Err(), cmd.Wait())
}

func (s *server) stop() {
	s.cmd.Process.Signal(os.Interrupt)
	s.cmd.Wait()
}

// send posts events from..to, and returns when all are acknowledged.
func (s *server) send(from, to, batch, senders int) error {
	var next atomic.Int64
	next.Store(int64(from))
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	var wg sync.WaitGroup
	for range senders {
		wg.Go(func() {
			for ctx.Err() == nil {
				n := int(next.Add(int64(batch))) - batch
				if n >= to {
					return
				}
				if err := s.post(ctx, n, min(n+batch, to)); err != nil {
					cancel(err)
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

func (s *server) post(ctx context.Context, from, to int) error {
	path, kind := "/api/v1/lineage", "application/json"
	body := lineagetest.LoadEvent(from)
	if to > from+1 {
		path, kind = "/api/v1/lineage/batch", "application/x-ndjson"
		for n := from + 1; n < to; n++ {
			body = append(append(body, '\n'), lineagetest.LoadEvent(n)...)
		}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", kind)
	answer, err := s.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode >= 300 {
		return errors.Join(err, fmt.Errorf("%s: %.300s", answer.Status, text))
	}
	return nil
}

// settled waits until the graph has all and nothing is pending.
func (s *server) settled(events uint64) error {
	for {
		m, err := s.metrics()
		if err != nil {
			return err
		}
		if m["graphd_projection_behind"] == 0 && m["graphd_store_settling"] == 0 {
			if got := m[`graphd_store_objects{kind="event"}`]; got != float64(events) {
				return fmt.Errorf("the graph has %v events, want %d", got, events)
			}
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// measurement is the state of the server at a moment.
type measurement struct {
	at                              time.Time
	cpu                             time.Duration
	rss, rows, rowBytes, debt, disk float64
}

func (s *server) measure() (measurement, error) {
	m, err := s.metrics()
	if err != nil {
		return measurement{}, err
	}
	// CPU time is in ticks of 10 ms on every Linux; resident memory in pages.
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		return measurement{}, err
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	pages, _ := strconv.Atoi(fields[21])
	return measurement{
		at: time.Now(), cpu: time.Duration(user+system) * 10 * time.Millisecond, rss: float64(pages * os.Getpagesize()),
		rows:     m["graphd_store_rows_written"] + m["graphd_ledger_rows_written"],
		rowBytes: m["graphd_store_row_bytes_written"] + m["graphd_ledger_row_bytes_written"],
		debt:     m["graphd_store_compaction_debt"], disk: m["graphd_store_size"] + m["graphd_ledger_size"],
	}, nil
}

// metrics reads the server's metrics, by name, with the label kind where there is
// one.
func (s *server) metrics() (map[string]float64, error) {
	answer, err := s.client.Get(s.url + "/metrics")
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	m := map[string]float64{}
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		line := lines.Text()
		at := strings.LastIndexByte(line, ' ')
		if at < 0 || line[0] == '#' {
			continue
		}
		series, value := line[:at], line[at+1:]
		name, labels, _ := strings.Cut(series, "{")
		for _, unit := range []string{"_bytes", "_total", "_seconds", "_bytes"} {
			name = strings.TrimSuffix(name, unit)
		}
		if _, kind, ok := strings.Cut(labels, `kind="`); ok {
			name += `{kind="` + kind[:strings.IndexByte(kind, '"')] + `"}`
		}
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			m[name] += v
		}
	}
	return m, lines.Err()
}

// profile begins a CPU profile; what it returns waits for its end.
func (s *server) profile(file string) func() error {
	done := make(chan error, 1)
	go func() {
		answer, err := http.Get(s.debug + "/debug/pprof/profile?seconds=20")
		if err != nil {
			done <- err
			return
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		done <- errors.Join(err, os.WriteFile(file, text, 0o644))
	}()
	return func() error { return <-done }
}
