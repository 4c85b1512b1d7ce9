package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// Machine is where a run took place, and on what.
type Machine struct {
	Date      string `json:"date"`
	CPU       string `json:"cpu"`
	Cores     int    `json:"cores"`
	Memory    string `json:"memory"`
	System    string `json:"system"`
	Go        string `json:"go"`
	Redis     string `json:"redis"`
	Postgres  string `json:"postgres"`
	Load      string `json:"loadBefore"` // load average as the run began
	LoadAfter string `json:"loadAfter"`
}

func thisMachine(w *world) Machine {
	kb, _ := strconv.ParseFloat(strings.Fields(field("/proc/meminfo", "MemTotal:") + " 0")[0], 64)
	return Machine{
		Date: w.started.UTC().Format("2006-01-02 15:04 UTC"), CPU: strings.TrimLeft(field("/proc/cpuinfo", "model name"), "\t: "),
		Cores: runtime.NumCPU(), Memory: fmt.Sprintf("%.0f GiB", kb/(1<<20)),
		System: strings.TrimSpace(runtime.GOOS + " " + strings.TrimSpace(text("/proc/sys/kernel/osrelease"))), Go: runtime.Version(), Load: loadAverage(),
	}
}

// versions asks the servers for theirs.
func (m *Machine) versions(ctx context.Context, w *world) {
	info, _ := w.rdb.Info(ctx, "server").Result()
	_, rest, _ := strings.Cut(info, "redis_version:")
	m.Redis, _, _ = strings.Cut(rest, "\r")
	_ = w.db.QueryRow(ctx, "SELECT current_setting('server_version')").Scan(&m.Postgres)
}

func loadAverage() string {
	load, _, _ := strings.Cut(text("/proc/loadavg"), " ")
	return load
}

func text(path string) string {
	b, _ := os.ReadFile(path) // of another system: nothing is known
	return string(b)
}

func field(path, name string) string {
	for line := range strings.Lines(text(path)) {
		if rest, found := strings.CutPrefix(line, name); found {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}
