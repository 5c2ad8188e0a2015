// The same call as a command: with curl over REST, and with grpcurl. Tokens and secrets are left out.
import type { DescMessage, JsonObject, JsonValue } from '@bufbuild/protobuf';
import { nameOf, ruleOf, type CallOptions, type Operation } from './call.svelte';
import { fieldRule } from './rules';

/** Quotes a word for a shell. */
function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

/** The request with every secret replaced by a variable. */
export function withoutSecrets(message: DescMessage, request: JsonObject): JsonObject {
  const shown: JsonObject = {};
  for (const [name, value] of Object.entries(request)) {
    const field = message.fields.find((f) => f.jsonName === name);
    if (!field) continue;
    if (fieldRule(message, field).secret) shown[name] = `$${field.name.toUpperCase()}`;
    else if (field.message) shown[name] = deeper(field.message, value);
    else shown[name] = value;
  }
  return shown;
}

function deeper(message: DescMessage, value: JsonValue): JsonValue {
  if (message.typeName.startsWith('google.')) return value;
  if (Array.isArray(value)) return value.map((v) => deeper(message, v));
  return value !== null && typeof value === 'object' ? withoutSecrets(message, value) : value;
}

function headersOf(operation: Operation, options: CallOptions): string[] {
  const rule = ruleOf(operation);
  const set: string[] = [];
  if (options.org && rule.scope !== 'self' && rule.scope !== 'path') set.push(`x-service-orgid: ${options.org}`);
  if (options.match !== undefined && rule.updates) set.push(`if-match: "${options.match}"`);
  return set;
}

/** Keeps `$TOKEN` outside of the quotes that would hide it from the shell. */
const bearer = `-H "authorization: Bearer $TOKEN"`;

/** The call with curl. */
export function asCurl(operation: Operation, request: JsonObject, options: CallOptions = {}): string {
  const rule = ruleOf(operation);
  const rest = withoutSecrets(operation.input, request);
  const path = rule.path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const field = operation.input.fields.find((f) => f.name === name);
    const value = field ? rest[field.jsonName] : undefined;
    if (field) delete rest[field.jsonName];
    return encodeURIComponent(String(value ?? ''));
  });
  const lines = [
    `curl${rule.http === 'GET' ? '' : ` -X ${rule.http}`}`,
    bearer,
    ...headersOf(operation, options).map((h) => `-H ${quoted(h)}`),
  ];
  let query = '';
  if (rule.http === 'GET' || rule.http === 'DELETE') {
    const parameters = new URLSearchParams();
    for (const [name, value] of Object.entries(rest))
      for (const one of Array.isArray(value) ? value : [value]) parameters.append(name, String(one));
    query = parameters.size > 0 ? `?${parameters}` : '';
  } else {
    lines.push(`-H ${quoted('content-type: application/json')}`, `-d ${quoted(JSON.stringify(rest))}`);
  }
  return [...lines, quoted(`${location.origin}${path}${query}`)].join(' \\\n  ');
}

/** The call with grpcurl. */
export function asGrpcurl(operation: Operation, request: JsonObject, options: CallOptions = {}): string {
  const plain = location.protocol === 'http:' ? ' -plaintext' : '';
  const port = location.port || (location.protocol === 'http:' ? '80' : '443');
  return [
    `grpcurl${plain}`,
    bearer,
    ...headersOf(operation, options).map((h) => `-H ${quoted(h)}`),
    `-d ${quoted(JSON.stringify(withoutSecrets(operation.input, request)))}`,
    `${location.hostname}:${port} signet.v1.${nameOf(operation)}`,
  ].join(' \\\n  ');
}
