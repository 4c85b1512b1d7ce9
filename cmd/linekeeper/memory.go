package main

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"
)

// withoutFlags is for the Redis stand-in of dev, which knows no flags of
// scripts: it takes the first line away from each.
type withoutFlags struct{}

// DialHook changes nothing.
func (withoutFlags) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook changes nothing: scripts are sent in pipelines by their hash
// alone, and then whole, one by one.
func (withoutFlags) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook cuts the flags off a script that is sent whole. The stand-in
// never knows one by its hash, which is of the whole, so all are.
func (withoutFlags) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); cmd.Name() == "eval" {
			if src, ok := args[1].(string); ok && strings.HasPrefix(src, "#!") {
				_, args[1], _ = strings.Cut(src, "\n")
			}
		}
		return next(ctx, cmd)
	}
}
