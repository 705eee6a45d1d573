// Command graphd is a lineage graph server that speaks OpenLineage, and the
// tools that go with it. graphd help lists its commands.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv))
}

// Exit statuses.
const (
	exitFailed = 1 // it did not go well, or the answer is no
	exitUsage  = 2 // it was not understood, or could not be tried
)

// app is what every command works with.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
}

// run is the whole program: it runs the command that args name until it is done
// or ctx ends, and returns the exit status. Nothing else of the process is used,
// so that a test can run it.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, getenv func(string) string) int {
	a := &app{stdin, stdout, stderr, getenv}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	var status *statusError
	var usage *usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "graphd: %v\n\n%s", err, cmd.UsageString())
		return exitUsage
	case errors.As(err, &status):
		if status.err != nil {
			fmt.Fprintf(stderr, "graphd: %v\n", status.err)
		}
		return status.code
	}
	fmt.Fprintf(stderr, "graphd: %v\n", err)
	return exitFailed
}

// usageError is a command line that was not understood.
type usageError struct{ error }

// statusError ends the program with an exit status; err is nil if everything
// was said already.
type statusError struct {
	code int
	err  error
}

// Error implements error.
func (s *statusError) Error() string { return fmt.Sprintf("exit status %d", s.code) }

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "graphd",
		Short: "A lineage graph server that speaks OpenLineage",
		Long: "graphd is a lineage graph server that speaks OpenLineage.\n\n" +
			"Every flag can be given as an environment variable too, which its help names.",
		SilenceErrors: true, SilenceUsage: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &usageError{fmt.Errorf("there is no command %q", args[0])}
			}
			return &usageError{errors.New("which command?")}
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.AddCommand(a.serveCommand(), a.foldCommand(), a.identityCommand(), a.explainCommand(), a.versionCommand())
	root.AddCommand(a.ingestCommand(), a.snapshotCommand())
	for _, cmd := range root.Commands() {
		a.bindEnvironment(cmd)
	}
	return root
}

// variable is the environment variable of a flag.
func variable(flag string) string {
	return "GRAPHD_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// fromEnvironment is the annotation of a flag that the environment gave.
const fromEnvironment = "graphd_environment"

// given says who gave a flag. What is greater counts before what is less.
type given int

const (
	byDefault given = iota
	byEnvironment
	byCommandLine
)

// givenBy returns who gave a flag, byDefault for one that a command does not have.
func givenBy(fs *pflag.FlagSet, name string) given {
	switch f := fs.Lookup(name); {
	case f == nil || !f.Changed:
		return byDefault
	case f.Annotations[fromEnvironment] != nil:
		return byEnvironment
	}
	return byCommandLine
}

// bindEnvironment lets a command take from the environment each flag that is not
// on its command line, and says so in its help.
func (a *app) bindEnvironment(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Usage += " [$" + variable(f.Name) + "]" })
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) (err error) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			v := a.getenv(variable(f.Name))
			if f.Changed || v == "" || f.Name == "help" || err != nil {
				return
			}
			if bad := cmd.Flags().Set(f.Name, v); bad != nil {
				err = &usageError{fmt.Errorf("%s=%s: %w", variable(f.Name), v, bad)}
				return
			}
			err = cmd.Flags().SetAnnotation(f.Name, fromEnvironment, []string{"true"})
		})
		return err
	}
}

// exactly and atLeast check the number of arguments, which what names.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != n {
			return &usageError{fmt.Errorf("want %s, got %d arguments", what, len(args))}
		}
		return nil
	}
}

func atLeast(n int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < n {
			return &usageError{fmt.Errorf("want %s", what)}
		}
		return nil
	}
}
