package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"antipode/client/command"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/internal/identity"
)

// Names of files in the folders that `antipode cert` writes.
const (
	caCertFile   = "ca.crt"
	caKeyFile    = "ca.key"
	nodeCertFile = "node.crt"
	nodeKeyFile  = "node.key"
)

// Default lifetimes in days. A node's certificate is renewed without a restart; a new authority
// means new certificates for all nodes.
const (
	caDays   = 3650
	nodeDays = 365
)

func certCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cert",
		Short: "Make the certificates by which the nodes of a stamp identify each other",
		Long: "Nodes of a stamp talk over TLS, and only to holders of a certificate of the stamp's authority.\n" +
			"Make the authority once, keep its key away from the nodes, and make a certificate for each node.",
		Example: `  antipode cert ca --out ca --name prod
  antipode cert node --ca ca --location north --node 1 --host node1.example,10.0.0.1 --out north-1`,
	}
	return group(cmd, certCACommand(), certNodeCommand(), certGatewayCommand())
}

func certCACommand() *cobra.Command {
	var out, name string
	var days int
	cmd := &cobra.Command{
		Use:   "ca",
		Short: "Make the authority of a stamp: " + caCertFile + " and " + caKeyFile,
		Example: `  antipode cert ca --out ca --name prod
  antipode cert ca --out ca --days 1825`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkDays(days); err != nil {
				return err
			}
			pair, err := identity.NewAuthority(name, clock.System{}.Now(), daysOf(days))
			if err != nil {
				return err
			}
			files := []newFile{{caCertFile, pair.Cert}, {caKeyFile, pair.Key}}
			if err := writeNew(out, files); err != nil {
				return err
			}
			return say(cmd.OutOrStdout(), out, files, "Keep "+caKeyFile+" away from the nodes: with it anyone can make a certificate of any node.")
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&out, "out", "", "folder to write to; made if missing")
	flags.StringVar(&name, "name", "antipode", "name of the stamp, as in the field stamp of node.yaml")
	flags.IntVar(&days, "days", caDays, "lifetime in days")
	required(cmd, "out")
	return cmd
}

func certNodeCommand() *cobra.Command {
	var ca, out, location string
	var number uint64
	var hosts []string
	var days int
	cmd := &cobra.Command{
		Use:   "node",
		Short: "Make the certificate of a node: " + nodeCertFile + ", " + nodeKeyFile + " and a copy of " + caCertFile,
		Long: "Makes key and certificate of a node and puts the authority's certificate beside them: all that the\n" +
			"section tls of its node.yaml names. Peers know a node by location and number; hosts are for other tools.\n" +
			"To renew, write to a new folder and move the files over the old ones: the node takes them up by itself.",
		Example: `  antipode cert node --ca ca --location north --node 1 --host node1.example,10.0.0.1 --out north-1`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(checkHosts(hosts), checkDays(days)); err != nil {
				return err
			}
			o := identity.NodeOptions{
				Identity: identity.Identity{Location: geo.Location(location), Node: geo.NodeID(number)}, Hosts: hosts, Valid: daysOf(days),
			}
			return certify(cmd.OutOrStdout(), ca, out, o, "node.yaml")
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&ca, "ca", "", "`folder` that antipode cert ca wrote")
	flags.StringVar(&location, "location", "", "location of the node")
	flags.Uint64Var(&number, "node", 0, "number of the node within its stamp, from 1")
	flags.StringSliceVar(&hosts, "host", nil, "names and IP addresses of the node, with commas between")
	flags.StringVar(&out, "out", "", "folder to write to; made if missing")
	flags.IntVar(&days, "days", nodeDays, "lifetime in days")
	required(cmd, "ca", "location", "node", "host", "out")
	return cmd
}

func certGatewayCommand() *cobra.Command {
	var ca, out, name string
	var days int
	cmd := &cobra.Command{
		Use: "gateway", SuggestFor: formerGatewayCommands(),
		Short: "Make the certificate of a gateway: " + nodeCertFile + ", " + nodeKeyFile + " and a copy of " + caCertFile,
		Long: "Makes key and certificate of a gateway and puts the authority's certificate beside them: all that the\n" +
			"section tls of its gateway.yaml names. Nodes take the address of a client from its holder.",
		Example: `  antipode cert gateway --ca ca --name east-1 --out gateway-east-1`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkDays(days); err != nil {
				return err
			}
			o := identity.NodeOptions{Identity: identity.Identity{Gateway: name}, Valid: daysOf(days)}
			if name == "" {
				return command.Wrong(errors.New("--name: want " + identity.LabelWords))
			}
			return certify(cmd.OutOrStdout(), ca, out, o, "gateway.yaml")
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&ca, "ca", "", "`folder` that antipode cert ca wrote")
	flags.StringVar(&name, "name", "", "name of the gateway")
	flags.StringVar(&out, "out", "", "folder to write to; made if missing")
	flags.IntVar(&days, "days", nodeDays, "lifetime in days")
	required(cmd, "ca", "name", "out")
	return cmd
}

// certify writes the certificate that o describes, signed by the authority in the folder ca, for
// the section tls of a configuration file.
func certify(w io.Writer, ca, out string, o identity.NodeOptions, file string) error {
	authority, caCert, err := readAuthority(ca)
	if err != nil {
		return err
	}
	pair, err := authority.NewNode(o, clock.System{}.Now())
	if err != nil {
		return err
	}
	files := []newFile{{nodeCertFile, pair.Cert}, {nodeKeyFile, pair.Key}, {caCertFile, caCert}}
	if err := writeNew(out, files); err != nil {
		return err
	}
	o.Identity.Stamp = authority.Stamp()
	days := int(o.Valid / daysOf(1))
	return say(w, out, files, fmt.Sprintf("For %s, %d days. Name them in the section tls of its %s.", o.Identity, days, file))
}

func daysOf(days int) time.Duration { return time.Duration(days) * 24 * time.Hour }

// daysMax is a century. A time.Duration ends at 292 years, and a longer lifetime wraps around.
const daysMax = 36500

// checkDays refuses lifetimes that cannot be.
func checkDays(days int) error {
	if days < 1 || days > daysMax {
		return command.Wrong(fmt.Errorf("--days %d: want a number above zero, at most %d", days, daysMax))
	}
	return nil
}

// checkHosts refuses hosts that are neither a name nor an address.
func checkHosts(hosts []string) error {
	for _, h := range hosts {
		if net.ParseIP(h) == nil && (h == "" || strings.ContainsAny(h, ":/ @*")) {
			return command.Wrong(fmt.Errorf("--host %q: want names and IP addresses without ports", h))
		}
	}
	return nil
}

func readAuthority(dir string) (*identity.Authority, []byte, error) {
	cert, err := os.ReadFile(filepath.Join(dir, caCertFile))
	key, keyErr := os.ReadFile(filepath.Join(dir, caKeyFile))
	if err = errors.Join(err, keyErr); err != nil {
		return nil, nil, fmt.Errorf("--ca %s: %w; make one with `antipode cert ca --out %s`", dir, err, dir)
	}
	authority, err := identity.OpenAuthority(identity.Pair{Cert: cert, Key: key})
	if err != nil {
		return nil, nil, fmt.Errorf("--ca %s: %w", dir, err)
	}
	return authority, cert, nil
}

// newFile is a file to write. It must not exist.
type newFile struct {
	name string
	data []byte
}

// writeNew writes all files, or none if one of them exists: an overwritten key is lost for good.
func writeNew(dir string, files []newFile) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("--out %s: %w", dir, err)
	}
	for _, f := range files {
		if _, err := os.Lstat(filepath.Join(dir, f.name)); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("--out %s: %s is there already and is not overwritten; choose another folder", dir, f.name)
		}
	}
	for _, f := range files {
		out, err := os.OpenFile(filepath.Join(dir, f.name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return fmt.Errorf("--out %s: %w", dir, err)
		}
		_, err = out.Write(f.data)
		if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
			return fmt.Errorf("--out %s: %w", dir, err)
		}
	}
	return nil
}

func say(w io.Writer, dir string, files []newFile, then string) error {
	names := make([]string, 0, len(files))
	for _, f := range files {
		names = append(names, filepath.Join(dir, f.name))
	}
	_, err := fmt.Fprintf(w, "Wrote %s.\n%s\n", strings.Join(names, ", "), then)
	return err
}
