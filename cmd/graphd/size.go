package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// size is a flag that counts bytes: a number, alone or with a unit.
type size int64

// units by their spelling in lower case; the longer ones first.
var units = []struct {
	name  string
	bytes int64
}{
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40},
	{"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12}, {"b", 1},
}

// Set implements pflag.Value.
func (s *size) Set(text string) error {
	number, unit := strings.ToLower(strings.TrimSpace(text)), int64(1)
	for _, u := range units {
		if n, ok := strings.CutSuffix(number, u.name); ok {
			number, unit = strings.TrimSpace(n), u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/unit {
		return fmt.Errorf("%q is no size: want bytes, or a number with a unit such as 512MiB or 2GB", text)
	}
	*s = size(n * unit)
	return nil
}

// String implements pflag.Value.
func (s *size) String() string {
	for i := 3; i >= 0; i-- {
		if u := units[i]; *s != 0 && int64(*s)%u.bytes == 0 {
			return strconv.FormatInt(int64(*s)/u.bytes, 10) + []string{"KiB", "MiB", "GiB", "TiB"}[i]
		}
	}
	return strconv.FormatInt(int64(*s), 10)
}

// Type implements pflag.Value: what help calls the argument.
func (s *size) Type() string { return "BYTES" }
