package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/draw"
	operators "github.com/linekeeper/linekeeper/internal/cli"
)

type drawCmd struct {
	Verify drawVerify `cmd:"" help:"Check a draw by what was published: nobody chose who got which place. Connects to nothing."`
}

type drawVerify struct {
	File       string `arg:"" help:"The list of entrants, or a proof of one of them; - for standard input."`
	Member     string `placeholder:"ID" help:"Whose place to look up."`
	Commitment string `placeholder:"HEX" help:"What the room published when it opened."`
	Root       string `placeholder:"HEX" help:"The root as you have it from elsewhere."`
	output
	want draw.Expect
}

// Check reads what the document is to be compared with.
func (c *drawVerify) Check() error {
	hash := func(flag, text string) (draw.Hash, error) {
		if text == "" {
			return draw.Hash{}, nil
		}
		h, err := draw.ParseHash(text)
		if err != nil {
			err = fmt.Errorf("%s: %w", flag, err)
		}
		return h, err
	}
	commitment, wrongCommitment := hash("--commitment", c.Commitment)
	root, wrongRoot := hash("--root", c.Root)
	var wrongMember error
	if c.Member != "" && !credential.ValidMember(c.Member) {
		wrongMember = errors.New("--member: an id has 1 to 128 printable letters without spaces")
	}
	c.want = draw.Expect{Commitment: commitment, Root: root, Member: c.Member}
	return errors.Join(wrongMember, wrongCommitment, wrongRoot)
}

// Run prints one line a check, and fails if one does.
func (c *drawVerify) Run(std streams) error {
	report, err := c.verify(std.in)
	if err != nil {
		return err
	}
	v, err := operators.NewView(report, func(w io.Writer) {
		for _, f := range report.Checks {
			fmt.Fprintf(w, "%s\t%s\t%s\n", f.Level, f.Check, f.Found)
		}
	})
	if err := c.shown(std, v, err); err != nil {
		return err
	}
	if !report.Valid {
		return errors.New("this is not a fair draw, or not its document: see FAIL above")
	}
	return nil
}

func (c *drawVerify) verify(in io.Reader) (draw.Report, error) {
	if c.File == "-" {
		return c.named("standard input", in)
	}
	f, err := os.Open(c.File)
	if err != nil {
		return draw.Report{}, misuse{err}
	}
	defer func() { _ = f.Close() }()
	return c.named(c.File, f)
}

func (c *drawVerify) named(name string, r io.Reader) (draw.Report, error) {
	report, err := draw.Verify(r, c.want)
	if err != nil {
		err = fmt.Errorf("read %s: %w", name, err)
	}
	return report, err
}
