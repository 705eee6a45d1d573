package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes the test binary be graphd where a script calls that.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"graphd": func() {
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			context.AfterFunc(ctx, stop)
			os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv))
		},
	})
}

// TestScripts runs the scripts below testdata/script. Beside the usual commands
// they have gzip FILE and zstd FILE, which write FILE.gz and FILE.zst.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"gzip": compressor(".gz", func(text []byte) []byte {
				var b bytes.Buffer
				w := gzip.NewWriter(&b)
				w.Write(text)
				w.Close()
				return b.Bytes()
			}),
			"zstd": compressor(".zst", func(text []byte) []byte {
				w, err := zstd.NewWriter(nil)
				if err != nil {
					t.Fatal(err)
				}
				return w.EncodeAll(text, nil)
			}),
		},
	})
}

func compressor(extension string, compress func([]byte) []byte) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, _ bool, args []string) {
		for _, file := range args {
			path := ts.MkAbs(file)
			text, err := os.ReadFile(path)
			ts.Check(err)
			ts.Check(os.WriteFile(path+extension, compress(text), 0o600))
		}
	}
}
