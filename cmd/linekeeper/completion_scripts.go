package main

// All three scripts follow the words typed so far from command to command, and
// offer what can stand behind the last one. Flags, and what is no command (the
// name of a room, say), are passed over.

var bashScript = script(`
# bash completion of linekeeper
_linekeeper() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} path="" words="" i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$path/${COMP_WORDS[i]}" in
{{- range .}}{{if .Path}}
      {{printf "%s/%s" .Parent .Name | q}}) path={{q .Path}} ;;{{end}}{{end}}
    esac
  done
  case "$path/$previous" in
{{- range $l := .}}{{range .Valued}}
    {{printf "%s/%s" $l.Path .Text | q}}) words={{q .Choices}} ;;{{end}}{{end}}
  esac
  if [[ -z $words ]]; then
    case "$path" in
{{- range .}}
      {{q .Path}}) words={{q .Texts}} ;;{{end}}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _linekeeper linekeeper
`)

var zshScript = script(`
#compdef linekeeper
# zsh completion of linekeeper
_linekeeper() {
  local previous=${words[CURRENT-1]} at="" i
  local -a offers
  for ((i = 2; i < CURRENT; i++)); do
    case "$at/${words[i]}" in
{{- range .}}{{if .Path}}
      {{printf "%s/%s" .Parent .Name | q}}) at={{q .Path}} ;;{{end}}{{end}}
    esac
  done
  case "$at/$previous" in
{{- range $l := .}}{{range .Valued}}
    {{printf "%s/%s" $l.Path .Text | q}}) offers=({{range .Values}}{{q .}} {{end}}) ;;{{end}}{{end}}
  esac
  if (( ! $#offers )); then
    case "$at" in
{{- range .}}
      {{q .Path}}) offers=({{range .Words}}
        {{printf "%s:%s" .Text .Help | q}}{{end}}) ;;{{end}}
    esac
  fi
  _describe -o 'linekeeper' offers || _files
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _linekeeper "$@"
else
  compdef _linekeeper linekeeper
fi
`)

var fishScript = script(`
# fish completion of linekeeper
function __linekeeper_at
  set -l at ''
  for word in (commandline -opc)[2..-1]
    switch "$at/$word"
{{- range .}}{{if .Path}}
      case {{printf "%s/%s" .Parent .Name | q}}
        set at {{q .Path}}{{end}}{{end}}
    end
  end
  test "$at" = "$argv[1]"
end
{{range $l := .}}{{range .Words}}complete -c linekeeper -n {{printf "__linekeeper_at '%s'" $l.Path | printf "%q"}}
{{- if not .IsFlag}} -f -a {{q .Text}}
{{- else if .IsShort}} -s {{.Bare}}
{{- else}} -l {{.Bare}}{{end}}
{{- if .Values}} -x -a {{q .Choices}}{{end}} -d {{q .Help}}
{{end}}{{end}}`)
