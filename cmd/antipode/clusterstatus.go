package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"antipode/client/command"
	"antipode/server/cluster"
)

func clusterStatusCommand(f *clusterFlags) *cobra.Command {
	output := formText
	c := &cobra.Command{
		Use:   "status",
		Short: "Show which of the processes run, and how others ended; exit code 1 unless all run",
		Example: `  antipode cluster status
  antipode cluster status --dir /tmp/cluster --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := cluster.Existing(f.dir)
			if errors.Is(err, fs.ErrNotExist) {
				return command.Wrong(fmt.Errorf("no cluster was started in %s: give its folder with --dir, or make one with antipode cluster start", f.dir))
			}
			if err != nil {
				return err
			}
			start := fmt.Sprintf("%s cluster start --dir %s", os.Args[0], f.dir)
			return showCluster(cmd.OutOrStdout(), cluster.Status(cmd.Context(), o), output, ctlFor(os.Args[0], o.Gateway().Admin()), start)
		},
	}
	c.Flags().VarP(&output, "output", "o", "text, or json")
	return c
}

// showCluster writes the processes, and under them why those that do not run do not. start is the command that starts these; it
// does nothing about one that runs and does not answer.
func showCluster(out io.Writer, all []cluster.Process, output form, ctl, start string) error {
	if output == formJSON {
		if err := json.NewEncoder(out).Encode(all); err != nil {
			return err
		}
	} else {
		tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(tw, "PROCESS\tSTATE\tPID\tANSWERS AT\tLOG")
		for _, p := range all {
			pid := "-"
			if p.PID != 0 {
				pid = fmt.Sprint(p.PID)
			}
			_, _ = fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", p.Name, p.State, pid, p.Address, p.Log)
		}
		if err := tw.Flush(); err != nil {
			return err
		}
	}
	down, ended := 0, 0
	for _, p := range all {
		if p.State != cluster.Running {
			down++
		}
		if p.State == cluster.Exited || p.State == cluster.Stopped {
			ended++
		}
		if p.Why != "" && output != formJSON {
			if _, err := fmt.Fprintf(out, "%s: %s\n", p.Name, p.Why); err != nil {
				return err
			}
		}
	}
	switch {
	case ended > 0:
		return fmt.Errorf("%d of %d processes do not run or do not answer; %s starts what does not run", down, len(all), start)
	case down > 0:
		return fmt.Errorf("%d of %d processes do not run or do not answer: their logs say why", down, len(all))
	case output == formJSON:
		return nil
	}
	_, err := fmt.Fprintf(out, "All run. What they say of the data: %s check\n", ctl)
	return err
}
