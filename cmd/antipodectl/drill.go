package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/spf13/cobra"

	"antipode/client/admin"
	"antipode/client/drill"
	"antipode/geo"
	"antipode/internal/clock"
)

// drillTable is the table of a drill, which is deleted afterwards.
const drillTable = "antipodedrill"

func (t *tool) drillCommand() *cobra.Command {
	var calm, within time.Duration
	var yes bool
	var html string
	c := &cobra.Command{
		Use:   "drill ACCOUNT [--yes]",
		Short: "Practise a planned failover of an account and back, and measure what clients see",
		Long: `drill writes and reads rows of a table of its own in ACCOUNT, fails the account over to its
other location and back while it does, compares both copies, and reports: how long writes and
reads of either name stood, what failed, and whether an acknowledged write is gone. The
failovers are planned ones: clients of the account wait for each, and nothing is lost.

Its table antipodedrill is deleted at the end. --html writes the report as one page with a
picture. Without --yes it says what it would do. Exit codes: 0 nothing was lost and both
copies are equal, 1 otherwise.`,
		Example: `  antipodectl drill pictures --yes
  antipodectl drill pictures --yes --duration 1m --html drill.html
  antipodectl drill pictures --yes --output json | jq .moves`,
		Args: exactly("ACCOUNT"),
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		name := geo.Account(args[0])
		if calm <= 0 || within <= 0 {
			return usageError{errors.New("--duration and --within are times above 0")}
		}
		plan, err := t.planFailover(cmd.Context(), name)
		if err != nil {
			return err
		}
		if !yes || len(plan.Blocked) > 0 {
			err := t.print(plan, func(w io.Writer) {
				writePlan(w, plan)
				_, _ = fmt.Fprintln(w, "nothing was changed: --yes moves the account there and back")
			})
			if err == nil && len(plan.Blocked) > 0 {
				err = exitError{exitDiffers, fmt.Errorf("a drill of %s is blocked", name)}
			}
			return err
		}
		out, err := t.drill(cmd.Context(), plan, calm/3, within)
		if out == nil {
			return err
		}
		err = errors.Join(err, t.print(out, func(w io.Writer) { writeDrill(w, out) }), writePage(html, out))
		switch {
		case err != nil:
			return exitError{exitDiffers, err}
		case out.Lost > 0 || out.Verify != admin.VerifyEqual:
			return exitError{exitDiffers, fmt.Errorf("the drill of %s: %d acknowledged writes are gone, the copies are %s", name, out.Lost, out.Verify)}
		}
		return nil
	}
	c.Flags().DurationVar(&calm, "duration", 15*time.Second, "`TIME` that clients run beside the failovers")
	c.Flags().DurationVar(&within, "within", 30*time.Second, "`TIME` after which a failover ends by itself without effect")
	c.Flags().BoolVar(&yes, "yes", false, "begin it")
	c.Flags().StringVar(&html, "html", "", "`FILE` for the report as a page")
	return c
}

// drill runs a drill. The report is nil if nothing was measured.
func (t *tool) drill(ctx context.Context, plan failoverPlan, calm, within time.Duration) (*drill.Report, error) {
	target, err := t.drillTarget(ctx, plan.Account)
	if err != nil {
		return nil, err
	}
	there, back := plan, plan
	back.From, back.To = plan.To, plan.From
	move := func(p failoverPlan) drill.Move {
		return drill.Move{Name: fmt.Sprintf("%s to %s", p.From, p.To), Do: func(ctx context.Context) error {
			_, err := t.failover(ctx, p.Account, p, within)
			return err
		}}
	}
	out, err := drill.Run(ctx, drill.Options{
		Target: target, Now: t.mono, Calm: calm, Wait: clock.Wait,
		OnMove: func(name string) { _, _ = fmt.Fprintln(t.errOut, name) },
	}, move(there), move(back))
	out.Account = string(plan.Account)
	if err == nil {
		out.Verify, err = t.drillVerified(ctx, plan.Account)
	}
	_, deleteErr := target.primary.Delete(ctx, nil)
	return out, errors.Join(err, deleteErr)
}

// drillVerified compares both copies until all of them could be compared.
func (t *tool) drillVerified(ctx context.Context, name geo.Account) (outcome string, err error) {
	for range 5 {
		v, err := t.verify(ctx, name, admin.VerifyQuery{})
		if err != nil {
			return "", err
		}
		if outcome = v.Outcome; outcome == admin.VerifyEqual || outcome == admin.VerifyDifferent {
			break
		}
	}
	return outcome, nil
}

// drillAccount is the drill's table through both names. It implements drill.Target.
type drillAccount struct{ primary, secondary *aztables.Client }

// drillTarget makes the drill's table.
func (t *tool) drillTarget(ctx context.Context, name geo.Account) (*drillAccount, error) {
	a, err := t.client.Account(ctx, name)
	if err != nil {
		return nil, err
	}
	keys, err := t.client.Keys(ctx, name)
	if err != nil {
		return nil, err
	}
	cred, err := aztables.NewSharedKeyCredential(string(name), keys.Key1)
	if err != nil {
		return nil, err
	}
	client := func(url string) (*aztables.Client, error) {
		// What fails is to be seen, so nothing is tried again.
		o := &aztables.ClientOptions{ClientOptions: azcore.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}}}
		s, err := aztables.NewServiceClientWithSharedKey(url, cred, o)
		if err != nil {
			return nil, err
		}
		return s.NewClient(drillTable), nil
	}
	out := &drillAccount{}
	for _, e := range a.Endpoints {
		if e.Service != geo.Table.String() {
			continue
		}
		if e.Secondary == "" {
			return nil, fmt.Errorf("account %s is %s: a drill needs one whose secondary can be read", name, a.Redundancy)
		}
		if out.primary, err = client(e.Primary); err == nil {
			out.secondary, err = client(e.Secondary)
		}
		if err != nil {
			return nil, err
		}
	}
	if out.primary == nil {
		return nil, fmt.Errorf("account %s has no endpoint for tables here", name)
	}
	_, err = out.primary.CreateTable(ctx, nil)
	if answered(err, "TableAlreadyExists") {
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("the table %s: %w", drillTable, err)
	}
	return out, out.fill(ctx)
}

// answered reports whether an error is an answer with a code.
func answered(err error, code string) bool {
	var a *azcore.ResponseError
	return errors.As(err, &a) && a.ErrorCode == code
}

// fill waits until the table can be read through both names.
func (d *drillAccount) fill(ctx context.Context) error {
	if err := d.Write(ctx, 0, 0); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		_, err := d.secondary.GetEntity(ctx, drillTable, "0", nil)
		if err == nil || clock.Wait(ctx, failoverPause) != nil {
			return err
		}
	}
}

// drillRow is a row of the table.
type drillRow struct {
	PartitionKey, RowKey string
	Value                string
}

// Write implements drill.Target.
func (d *drillAccount) Write(ctx context.Context, row int, value uint64) error {
	b, err := json.Marshal(drillRow{drillTable, fmt.Sprint(row), fmt.Sprint(value)})
	if err == nil {
		_, err = d.primary.UpsertEntity(ctx, b, nil)
	}
	return short(err)
}

// Read implements drill.Target.
func (d *drillAccount) Read(ctx context.Context, row int, secondary bool) (value uint64, err error) {
	c := d.primary
	if secondary {
		c = d.secondary
	}
	got, err := c.GetEntity(ctx, drillTable, fmt.Sprint(row), nil)
	var a *azcore.ResponseError
	if errors.As(err, &a) && a.StatusCode == http.StatusNotFound {
		return 0, nil
	}
	var found drillRow
	if err == nil {
		err = json.Unmarshal(got.Value, &found)
	}
	if err == nil {
		_, err = fmt.Sscan(found.Value, &value)
	}
	return value, short(err)
}

// short is the status and the code of an answer in place of all of it.
func short(err error) error {
	var a *azcore.ResponseError
	if errors.As(err, &a) {
		return fmt.Errorf("%d %s", a.StatusCode, a.ErrorCode)
	}
	return err
}

// writePage writes the report as a page, if a file was named.
func writePage(file string, r *drill.Report) error {
	if file == "" {
		return nil
	}
	var b strings.Builder
	if err := drill.WritePage(&b, r); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(b.String()), 0o644)
}

func writeDrill(w io.Writer, r *drill.Report) {
	ms := func(d time.Duration) string { return fmt.Sprint(d.Round(time.Millisecond)) }
	_, _ = fmt.Fprintf(w, "drill of %s: %d of the last acknowledged writes are gone; both copies: %s\n", r.Account, r.Lost, orDash(r.Verify))
	rows := [][]string{{"MOVE", "TOOK", "WRITES STOOD", "READS STOOD", "SECONDARY READS STOOD", "FAILED"}}
	for _, m := range r.Moves {
		rows = append(rows, []string{
			m.Name, ms(m.Took()), ms(m.Stood[drill.Writes]), ms(m.Stood[drill.PrimaryReads]), ms(m.Stood[drill.SecondaryReads]), orDash(m.Failed),
		})
	}
	table(w, rows)
	rows = [][]string{{"REQUESTS", "DONE", "FAILED", "P50", "P99", "MOST"}}
	for _, s := range r.Seen {
		rows = append(rows, []string{string(s.Kind), fmt.Sprint(s.Done), fmt.Sprint(s.Failed), ms(s.P50), ms(s.P99), ms(s.Most)})
	}
	table(w, rows)
	_, _ = fmt.Fprintf(w, "no read of either name succeeded for %s at most\n", ms(r.NeitherRead))
	for _, f := range r.Errors {
		_, _ = fmt.Fprintf(w, "%d %s failed: %s\n", f.N, f.Kind, f.Says)
	}
}
