/** A failed check throws; what it says is the test's message. */

export function check(condition, message = "a check failed") {
  if (!condition) throw new Error(message);
}

export function same(actual, expected) {
  const [one, other] = [actual, expected].map((value) => JSON.stringify(value));
  check(one === other, `${one} instead of ${other}`);
}

export function throws(name, action) {
  try {
    action();
  } catch (error) {
    check(error.name === name, `${error.name} (${error.message}) instead of ${name}`);
    return error;
  }
  throw new Error(`nothing was thrown instead of ${name}`);
}

export async function rejects(name, promise) {
  let error;
  try {
    await promise;
  } catch (caught) {
    error = caught;
  }
  check(error?.name === name, `${error?.name} (${error?.message}) instead of ${name}`);
  return error;
}
