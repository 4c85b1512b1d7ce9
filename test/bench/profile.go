package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	profileFor = 15 * time.Second
	// profileOrders are more than can be placed meanwhile.
	profileOrders = 120_000
)

// profile loads one path of the product and leaves its profiles in the directory.
func profile(ctx context.Context, path string, o options, out io.Writer) error {
	w := &world{plan: plans["quick"], out: out, binary: o.binary, dir: filepath.Join(o.dir, "data"), started: time.Now()}
	defer w.close()
	if err := w.open(ctx); err != nil {
		return err
	}
	load, err := w.loadOf(ctx, path)
	if err != nil {
		return err
	}
	w.say("loading %s for %v", path, profileFor)
	var answers tally
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		answers, err = drive(ctx, hosts(only(w.product)), 64, profileFor+time.Second, load)
		return err
	})
	g.Go(func() error {
		cpu := fmt.Sprintf("cpu?seconds=%.0f", profileFor.Seconds())
		return errors.Join(w.take(ctx, cpu, filepath.Join(o.dir, "cpu.pprof")), w.take(ctx, "heap", filepath.Join(o.dir, "heap.pprof")))
	})
	if err := g.Wait(); err != nil {
		return err
	}
	w.say("%.0f answers a second; look at them with: go tool pprof -top %s", float64(answers.requests)/answers.seconds, filepath.Join(o.dir, "cpu.pprof"))
	return nil
}

// loadOf is what the bench sends to that path.
func (w *world) loadOf(ctx context.Context, path string) (traffic, error) {
	switch path {
	case "poll":
		return w.crowd(ctx, "crowd", w.plan.tickets+unpolled, w.plan.tickets, slow)
	case "enter":
		_, err := w.openRoom(ctx, doorRoom, slow)
		return enterRoom(doorRoom, &w.newcomers), err
	case "order":
		s, err := w.openShop(ctx)
		if err != nil {
			return nil, err
		}
		tokens, err := s.tokens(ctx, profileOrders)
		o := &orders{}
		for i, t := range tokens {
			o.requests = append(o.requests, post(address(i)+"X-Entry-Token: "+t+"\r\n", hundred(i)))
		}
		return o, err
	}
	return nil, fmt.Errorf("no load %q: poll, enter or order", path)
}

// take asks the product for a profile, as its admin.
func (w *world) take(ctx context.Context, kind, file string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.product.Admin+"/admin/v1/profiles/"+kind, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+w.adminToken)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = wrongStatus(resp.StatusCode, http.StatusOK, b)
	}
	return errors.Join(err, os.WriteFile(file, b, 0o644))
}
