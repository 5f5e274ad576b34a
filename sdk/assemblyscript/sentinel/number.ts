// maxExponent is larger than the number of digits of any number in a message, and far
// below the maximum of an i64.
const maxExponent: i64 = 1 << 32;

// A Whole is the whole part of a JSON number, read digit by digit: an f64 would round it,
// and I64.parseInt silently loses high bits.
export class Whole {
  /** 0 if it does not fit. */
  value: i64 = 0;
  /** Whether the whole part fits an i64. */
  fits: bool = true;
  /** Whether there is a fraction. */
  fraction: bool = false;

  constructor(number: string) {
    const minus: i32 = number.charCodeAt(0) == 0x2d ? 1 : 0;
    const end = exponentAt(number), dot = number.indexOf(".");
    const point = dot < 0 ? end : dot;
    // left is the number of remaining digits of the whole part; the fraction is after them.
    let left = <i64>(point - minus) + exponent(number, end + 1);
    const limit: u64 = minus ? <u64>1 << 63 : <u64>i64.MAX_VALUE;
    let sum: u64 = 0;
    for (let i = minus; i < end && this.fits; i++) {
      if (i == point) continue;
      const digit = <u64>(number.charCodeAt(i) - 0x30);
      if (left-- <= 0) {
        if (digit) this.fraction = true;
        continue;
      }
      this.fits = sum <= (limit - digit) / 10;
      sum = sum * 10 + digit;
    }
    // An exponent adds zeros; 0 stays 0.
    for (; left > 0 && sum && this.fits; left--) {
      this.fits = sum <= limit / 10;
      sum *= 10;
    }
    if (this.fits) this.value = minus ? <i64>(0 - sum) : <i64>sum;
  }
}

function exponentAt(number: string): i32 {
  for (let i = 0; i < number.length; i++) if ((number.charCodeAt(i) | 32) == 0x65) return i;
  return number.length;
}

// exponent reads the exponent from i on, 0 if there is none.
function exponent(number: string, i: i32): i64 {
  let sum: i64 = 0, minus = false;
  for (; i < number.length; i++) {
    const c = number.charCodeAt(i);
    if (c == 0x2d) minus = true;
    if (c >= 0x30 && sum < maxExponent) sum = sum * 10 + <i64>(c - 0x30);
  }
  return minus ? -sum : sum;
}
