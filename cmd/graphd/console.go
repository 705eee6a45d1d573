package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// console is standard error of a command that shows how far it is. It is safe for
// concurrent use.
type console struct {
	mu  sync.Mutex
	w   io.Writer
	bar *progressbar.ProgressBar // nil: not shown
	// left is what the bar may still be moved by; a total that was guessed too low
	// must not push it over its end. Below 0: there is no total.
	left int64
}

// newConsole returns a console. It shows progress over paths if it is told to and
// w is a terminal.
func newConsole(w io.Writer, paths []string, progress bool) *console {
	c := &console{w: w}
	f, ok := w.(*os.File)
	if !progress || !ok || !term.IsTerminal(int(f.Fd())) {
		return c
	}
	c.left = textBytes(paths)
	c.bar = progressbar.NewOptions64(c.left, progressbar.OptionSetWriter(w), progressbar.OptionSetDescription("events taken in"),
		progressbar.OptionShowBytes(true), progressbar.OptionShowCount(), progressbar.OptionUseIECUnits(true), progressbar.OptionUseANSICodes(true),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionSetWidth(30), progressbar.OptionClearOnFinish(),
		// It draws when it is moved alone, never from a goroutine of its own amid a line.
		progressbar.OptionSetSpinnerChangeInterval(0), progressbar.OptionSetRenderBlankState(true))
	return c
}

// advance moves the bar by bytes of text.
func (c *console) advance(bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bar == nil {
		return
	}
	if c.left >= 0 {
		bytes = min(bytes, c.left)
		c.left -= bytes
	}
	_ = c.bar.Add64(bytes) // a bar that cannot be drawn stops nothing
}

// say writes a line above the bar.
func (c *console) say(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bar != nil {
		_ = c.bar.Clear()
	}
	fmt.Fprintf(c.w, "graphd: "+format+"\n", args...)
}

// Write implements io.Writer: it writes whole lines above the bar.
func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bar != nil {
		_ = c.bar.Clear()
	}
	return c.w.Write(p)
}

// end takes the bar away.
func (c *console) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bar != nil {
		_ = c.bar.Clear()
		_ = c.bar.Exit()
		c.bar = nil
	}
}

// textBytes is how much text of events paths hold, about; -1 if that cannot be
// told before it is read, which it cannot of a pipe, nor of what is compressed.
func textBytes(paths []string) int64 {
	total := int64(0)
	for _, path := range paths {
		err := filepath.WalkDir(path, func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || file != path && !strings.Contains(filepath.Ext(strings.TrimSuffix(strings.TrimSuffix(file, ".gz"), ".zst")), "json") {
				return err
			}
			info, err := os.Stat(file)
			if err == nil && (!info.Mode().IsRegular() || strings.HasSuffix(file, ".gz") || strings.HasSuffix(file, ".zst")) {
				err = fs.ErrInvalid
			}
			if err == nil {
				total += info.Size()
			}
			return err
		})
		if err != nil {
			return -1
		}
	}
	if total == 0 {
		return -1
	}
	return total
}
