package normalize

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/jsontree"
	"github.com/graphd/graphd/internal/openlineage"
)

// PlaceRule says of which producer's runs a job's name occurs once under its
// parent's run, so that a child's place under it is its slot.
type PlaceRule struct {
	Name string `json:"name"`
	// Producer is matched against the producer without its version: a * stands
	// for any text. Integration is matched against jobType.integration in upper
	// case. Either suffices.
	Producer    string `json:"producer"`
	Integration string `json:"integration"`
	// Except, if not "", is a glob of the job names that the rule does not place.
	Except string `json:"except"`
	// Numbered, if not "", limits the rule to jobs whose name is the parent's,
	// then this text, then a number.
	Numbered string `json:"numbered"`
	// BySQL tells children of one name apart by the digest of their SQL; a child
	// without SQL is not placed.
	BySQL bool `json:"bySql"`
}

// placeRules are the shipped ones. Spark is not among them: one application
// runs the same job name many times.
var placeRules = []PlaceRule{
	{Name: "dagster step", Producer: "*/integration/dagster", Integration: "DAGSTER"},
	// dbt itself is not placed: one nightly attempt may call it several times.
	{Name: "dbt node", Producer: "*/integration/dbt", Integration: "DBT", Except: "dbt-run-*"},
	{
		Name: "airflow query", Producer: "*/apache/airflow/tree/providers-openlineage/*", Integration: "AIRFLOW",
		Numbered: ".query.", BySQL: true,
	},
}

// owns reports whether the rule speaks of a job under a parent.
func (r *PlaceRule) owns(child, parent openlineage.Name) bool {
	if r.Except != "" && matchGlob(r.Except, child.Name) {
		return false
	}
	if r.Numbered == "" {
		return true
	}
	n, ok := strings.CutPrefix(child.Name, parent.Name+r.Numbered)
	_, err := strconv.ParseUint(n, 10, 32)
	return ok && err == nil
}

// slotOf returns the first slot that the event itself carries, its form in the
// identity document, and whether Airflow calls the run a backfill.
func (e *eventReader) slotOf(attempt fact.Attempt, parent fact.RunRef) (slot fact.Slot, identity jsontree.Value, backfill bool) {
	airflow, dagRun := e.facet(e.runFacets, "airflow"), e.facet(e.runFacets, "airflowDagRun")
	for _, f := range []*jsontree.Value{airflow, dagRun} {
		if f.At("dagRun", "run_type").StrOr("") == "backfill" {
			backfill = true
		}
	}
	if slot, identity, ok := airflowSlot(airflow, dagRun, attempt.Map); ok {
		return slot, identity, backfill
	}
	if text, ok := e.facet(e.runFacets, "nominalTime").Get(nominalStart).Str(); ok {
		if t, err := openlineage.ParseTime(text); err == nil {
			if t.Zoneless {
				e.warn(WarnZonelessTime, "/run/facets/nominalTime/"+nominalStart, "the time names no zone and was read as UTC")
			}
			start := jsontree.NewString(t.String())
			return fact.Slot{Rule: fact.RuleNominal, Value: canonicalArray(start)},
				ruleObject(fact.RuleNominal, jsontree.Item{Key: "start", Value: start}), backfill
		}
	}
	if of, ok := e.placeUnder(attempt.Job, parent); ok {
		return fact.Slot{Rule: fact.RulePlace, Value: canonicalArray(of...)},
			ruleObject(fact.RulePlace,
				jsontree.Item{Key: "of", Value: jsontree.NewArray(of...)},
				jsontree.Item{Key: "parent", Value: refValue(parent)}), backfill
	}
	runID, m := jsontree.NewString(attempt.RunID), mapValue(attempt.Map)
	return fact.Slot{Rule: fact.RuleRun, Value: canonicalArray(runID, m)},
		ruleObject(fact.RuleRun, jsontree.Item{Key: "runId", Value: runID}, jsontree.Item{Key: "mapIndex", Value: m}), backfill
}

func airflowSlot(airflow, dagRun *jsontree.Value, mapIndex int) (fact.Slot, jsontree.Value, bool) {
	task := airflow.At("task", "task_id").StrOr("")
	for _, f := range []*jsontree.Value{airflow, dagRun} {
		dagID := f.At("dag", "dag_id").StrOr(f.At("dagRun", "dag_id").StrOr(""))
		runID := f.At("dagRun", "run_id").StrOr("")
		if dagID == "" || runID == "" || f == airflow && task == "" {
			continue
		}
		values := []jsontree.Value{jsontree.NewString(dagID), jsontree.NewString(runID)}
		items := []jsontree.Item{{Key: "dagId", Value: values[0]}, {Key: "runId", Value: values[1]}}
		if f == airflow {
			values = append(values, jsontree.NewString(task), mapValue(mapIndex))
			items = append(items, jsontree.Item{Key: "taskId", Value: values[2]}, jsontree.Item{Key: "mapIndex", Value: values[3]})
		}
		return fact.Slot{Rule: fact.RuleAirflow, Value: canonicalArray(values...)}, ruleObject(fact.RuleAirflow, items...), true
	}
	return fact.Slot{}, jsontree.Value{}, false
}

// placeUnder reports whether a rule places a child under its parent, and what
// tells it apart from children of the same name.
func (e *eventReader) placeUnder(child openlineage.Name, parent fact.RunRef) (of []jsontree.Value, ok bool) {
	if parent.IsZero() {
		return nil, false
	}
	integration := strings.ToUpper(e.facet(e.jobFacets, "jobType").Get("integration").StrOr(""))
	for i := range placeRules {
		r := &placeRules[i]
		if integration != r.Integration && !matchGlob(r.Producer, e.producer) || !r.owns(child, parent.Job) {
			continue
		}
		if !r.BySQL {
			return nil, true
		}
		if sql := e.facet(e.jobFacets, "sql").Get("query").StrOr(""); sql != "" {
			sum := sha256.Sum256([]byte(sql))
			return []jsontree.Value{jsontree.NewString(hex.EncodeToString(sum[:24]))}, true
		}
	}
	return nil, false
}

// mapIndex returns Airflow's map index of a run, NoMap if it has none; a
// negative one is none.
func (e *eventReader) mapIndex() int {
	for _, v := range []*jsontree.Value{
		e.facet(e.runFacets, "airflow").At("taskInstance", "map_index"),
		e.facet(e.runFacets, "airflow_mappedTask").Get("mapIndex"),
	} {
		if v == nil || v.Kind != jsontree.Number {
			continue
		}
		if n, err := strconv.Atoi(v.Text); err == nil && n >= 0 {
			return n
		}
	}
	return fact.NoMap
}

func mapValue(m int) jsontree.Value {
	if m == fact.NoMap {
		return jsontree.Value{}
	}
	return jsontree.NewInt(int64(m))
}

func refValue(r fact.RunRef) jsontree.Value {
	return jsontree.NewObject(
		jsontree.Item{Key: "name", Value: jsontree.NewString(r.Job.Name)},
		jsontree.Item{Key: "namespace", Value: jsontree.NewString(r.Job.Namespace)},
		jsontree.Item{Key: "runId", Value: jsontree.NewString(r.RunID)})
}

func ruleObject(rule fact.Rule, items ...jsontree.Item) jsontree.Value {
	return jsontree.NewObject(append(items, jsontree.Item{Key: "rule", Value: jsontree.NewString(rule.String())})...)
}

func canonicalArray(vals ...jsontree.Value) string {
	v := jsontree.NewArray(vals...)
	return string(jsontree.AppendCanonical(nil, &v))
}

// matchGlob reports whether s matches a pattern in which * stands for any text.
func matchGlob(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == s
	}
	if !strings.HasPrefix(s, parts[0]) {
		return false
	}
	s = s[len(parts[0]):]
	for _, p := range parts[1 : len(parts)-1] {
		i := strings.Index(s, p)
		if i < 0 {
			return false
		}
		s = s[i+len(p):]
	}
	return strings.HasSuffix(s, parts[len(parts)-1])
}
