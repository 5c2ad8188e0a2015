// Writes src/gen/operations.ts: what the console knows of each operation beside its messages. It comes from the options
// of the definition (proto/), which are left out of the generated clients: they would make up half of them.
//
//   node tools/operations.mjs IMAGE OUT
import { readFileSync, writeFileSync } from 'node:fs';
import { createFileRegistry, fromBinary, getExtension, hasExtension } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';

const [imagePath, out] = process.argv.slice(2);
if (!imagePath || !out) throw new Error('usage: operations.mjs IMAGE OUT');

const image = readFileSync(imagePath);
const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, image));

/** @param {string} name */
const extension = (name) => {
  const found = registry.getExtension(name);
  if (!found) throw new Error(`the definition has no option ${name}`);
  return found;
};
const rule = extension('signet.v1.rule');
const http = extension('google.api.http');
const secret = extension('signet.v1.secret');
const limits = extension('buf.validate.field');

/** @param {import('@bufbuild/protobuf').DescExtension} wanted @param {any} options */
const option = (wanted, options) =>
  options && hasExtension(options, wanted) ? /** @type {any} */ (getExtension(options, wanted)) : undefined;

/** @type {Record<string, object>} */
const operations = {};
/** @type {Record<string, object>} */
const fields = {};
const scopes = ['', 'self', 'context', 'target', 'path', 'request'];
const proofs = ['', 'session', 'recent'];

for (const file of registry.files) {
  if (!file.proto.package.startsWith('signet.')) continue;
  for (const service of file.services) {
    for (const method of service.methods) {
      const r = option(rule, method.proto.options);
      const h = option(http, method.proto.options);
      if (!r || !h) throw new Error(`${method} has no rule or no path`);
      const [permission, path] = [r.who.case === 'permission' ? r.who.value : r.who.case, h.pattern.value];
      operations[`${service.name}/${method.name}`] = {
        permission,
        ...(r.narrower.length > 0 && { narrower: r.narrower }),
        scope: scopes[r.scope],
        ...(r.updates && { updates: true }),
        ...(r.creates && { creates: true }),
        ...(r.proof && { proof: proofs[r.proof] }),
        http: h.pattern.case.toUpperCase(),
        path,
      };
    }
  }
  for (const message of nested(file.messages)) {
    for (const field of message.fields) {
      const v = option(limits, field.proto.options);
      /** @type {Record<string, unknown>} */
      const known = {};
      if (option(secret, field.proto.options)) known.secret = true;
      if (v) {
        const text = v.type.case === 'string' ? v.type.value : undefined;
        const number =
          v.type.case === 'int32' || v.type.case === 'int64' || v.type.case === 'uint32' ? v.type.value : undefined;
        if (v.required || (text?.minLen ?? 0n) > 0n) known.required = true;
        if (text?.maxLen) known.max = Number(text.maxLen);
        if (v.type.case === 'repeated' && (v.type.value.minItems ?? 0n) > 0n) known.required = true;
        if (number?.greaterThan.case)
          known.from = Number(number.greaterThan.value) + (number.greaterThan.case === 'gt' ? 1 : 0);
        if (number?.lessThan.case) known.to = Number(number.lessThan.value) - (number.lessThan.case === 'lt' ? 1 : 0);
      }
      if (Object.keys(known).length > 0)
        fields[`${message.typeName.replace('signet.v1.', '')}.${field.localName}`] = known;
    }
  }
}

/**
 * @param {readonly import('@bufbuild/protobuf').DescMessage[]} messages @returns
 * {import('@bufbuild/protobuf').DescMessage[]}
 */
function nested(messages) {
  return messages.flatMap((m) => [m, ...nested(m.nestedMessages)]);
}

/** @param {Record<string, object>} entries */
const lines = (entries) =>
  Object.entries(entries)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `  '${key}': ${JSON.stringify(value)},`)
    .join('\n');

writeFileSync(
  out,
  `// Made by tools/operations.mjs from the definition.
import type { FieldRule, OperationRule } from '../lib/api/rules';

export const operations = {
${lines(operations)}
} as const satisfies Record<string, OperationRule>;

export const fields: Readonly<Record<string, FieldRule>> = {
${lines(fields)}
};
`,
);
