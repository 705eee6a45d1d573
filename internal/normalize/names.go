package normalize

import (
	"fmt"
	"strings"
	"time"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/openlineage"
)

// NameRules find the dataset entity behind a name as sent. Event IDs use names
// as sent, so a change of rules settles the graph anew and changes no identity.
type NameRules struct {
	// Collapse cuts partitions, dates, shards and file parts off names, so that
	// 365 daily runs over dated paths are one dataset. Off, every path is a
	// dataset of its own.
	Collapse bool
	// PathSchemes are the schemes of namespaces whose names are paths.
	PathSchemes []string
}

// DefaultNameRules returns the rules that graphd ships.
func DefaultNameRules() NameRules {
	return NameRules{Collapse: true, PathSchemes: []string{
		"file", "s3", "s3a", "s3n", "gs", "abfs", "abfss", "wasb", "wasbs", "adl", "hdfs", "viewfs", "webhdfs",
		"dbfs", "oss", "cosn", "obs", "r2",
	}}
}

// nameRulesVersion changes with the code below.
const nameRulesVersion = "1"

// Digest identifies the rules; a store keeps the digest of those it settled with.
func (r NameRules) Digest() fact.ID {
	return fact.Hash("name rules", append([]string{nameRulesVersion, fmt.Sprint(r.Collapse)}, r.PathSchemes...)...)
}

// Entity returns the entity that a dataset's name as sent belongs to, what was
// cut off as its subset, and whether the name is a dataset at all: a dbt common
// table expression is none.
func (r NameRules) Entity(sent openlineage.Name) (entity openlineage.Name, subset string, ok bool) {
	last := sent.Name[strings.LastIndexByte(sent.Name, '.')+1:]
	if strings.HasPrefix(last, "__dbt__cte__") {
		return sent, "", false
	}
	if !r.Collapse {
		return sent, "", true
	}
	switch {
	case r.isPath(sent.Namespace):
		sent.Name, subset = cutPath(sent.Name)
	case sent.Namespace == "bigquery":
		sent.Name, subset = cutShard(sent.Name)
	}
	return sent, subset, true
}

func (r NameRules) isPath(namespace string) bool {
	scheme, _, _ := strings.Cut(namespace, "://")
	for _, s := range r.PathSchemes {
		if scheme == s {
			return true
		}
	}
	return false
}

// cutPath cuts trailing segments that name a part of a dataset, never the first
// one. The subset is what was cut, without the slash before it.
func cutPath(path string) (kept, subset string) {
	first := strings.IndexFunc(path, func(r rune) bool { return r != '/' })
	if first < 0 {
		return path, ""
	}
	end := len(path) // of what is kept
	for {
		kept := strings.TrimRight(path[:end], "/")
		segments := trailingPart(kept[min(first, len(kept)):])
		if segments == 0 {
			break
		}
		cut := len(kept)
		for range segments {
			cut = strings.LastIndexByte(kept[:cut], '/')
		}
		end = cut
		for end > 0 && path[end-1] == '/' {
			end--
		}
	}
	if end == len(path) {
		return path, ""
	}
	return path[:end], strings.Trim(path[end:], "/")
}

// trailingPart returns how many segments at the end of path name a part of the
// dataset before them: 0 if none does or if they would be all of it.
func trailingPart(path string) int {
	segments := strings.Split(path, "/")
	if len(segments) < 2 {
		return 0
	}
	last := segments[len(segments)-1]
	switch {
	case strings.IndexByte(last, '=') > 0,
		strings.HasPrefix(last, "part-"),
		isGlob(last),
		isDate("2006-01-02", last),
		isDate("20060102", last):
		return 1
	}
	// YYYY/MM, YYYY/MM/DD, YYYY/MM/DD/HH
	for i, layout := range []string{"2006/01/02/15", "2006/01/02", "2006/01"} {
		n := 4 - i
		if len(segments) > n && isDate(layout, strings.Join(segments[len(segments)-n:], "/")) {
			return n
		}
	}
	return 0
}

// isDate reports whether s is a real date in layout, of a year that data has.
func isDate(layout, s string) bool {
	if len(s) != len(layout) {
		return false
	}
	t, err := time.Parse(layout, s)
	return err == nil && t.Year() >= 1900 && t.Year() < 2200
}

func isGlob(s string) bool {
	return strings.ContainsAny(s, "*?") ||
		strings.Contains(s, "[") && strings.Contains(s, "]") || strings.Contains(s, "{") && strings.Contains(s, "}")
}

// cutShard cuts BigQuery's $partition decorator and _YYYYMMDD shard suffix.
func cutShard(table string) (kept, subset string) {
	if i := strings.LastIndexByte(table, '$'); i > 0 && i > strings.LastIndexByte(table, '.')+1 {
		return table[:i], table[i:]
	}
	if i := strings.LastIndexByte(table, '_'); i > 0 && i > strings.LastIndexByte(table, '.')+1 {
		if s := table[i+1:]; s == "*" || isDate("20060102", s) {
			return table[:i], table[i:]
		}
	}
	return table, ""
}
