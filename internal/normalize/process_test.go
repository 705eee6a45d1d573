package normalize_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Identity is a function of the event alone: not of the time zone, the locale,
// the number of processors, or the order of a map in this process.
func TestIdentityDoesNotDependOnTheProcess(t *testing.T) {
	for _, env := range [][]string{
		{"TZ=Pacific/Kiritimati", "GOMAXPROCS=1", "LC_ALL=tr_TR.UTF-8", "LANG=tr_TR.UTF-8"},
		{"TZ=America/St_Johns", "GOMAXPROCS=7", "LC_ALL=C", "GODEBUG=randautoseed=0", "GOGC=1"},
	} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestVectors$", "-test.v")
		cmd.Env = append(os.Environ(), env...)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS: TestVectors") {
			t.Errorf("%s: %v\n%s", strings.Join(env, " "), err, out)
		}
	}
}

// One normalizer serves many at once, and remembers nothing of the events
// before.
func TestIdentityDoesNotDependOnOtherEvents(t *testing.T) {
	all, _ := readVectors(t)
	shipped := decoder(t, nil)
	events := slices.DeleteFunc(slices.Clone(all.Vectors), func(v *vector) bool { return v.Rules != nil || v.Rejected != "" })
	done := make(chan string)
	for worker := range 4 {
		go func() {
			var wrong []string
			for i := range events {
				v := events[(i*(2*worker+1)+worker)%len(events)]
				e, err := shipped.Decode([]byte(v.Event))
				if err != nil || e.ID.String() != v.EventID || e.Content.String() != v.Content {
					wrong = append(wrong, v.Name)
				}
			}
			done <- strings.Join(wrong, ", ")
		}()
	}
	for range 4 {
		if wrong := <-done; wrong != "" {
			t.Errorf("other IDs: %s", wrong)
		}
	}
}
