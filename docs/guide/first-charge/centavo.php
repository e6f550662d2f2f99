<?php
namespace Centavo;

/** An answer of 400 or above. `problem` has `code`, `message` and perhaps `errors`. */
final class Refused extends \Exception
{
    public function __construct(public readonly int $status, public readonly array $problem)
    {
        parent::__construct("$status {$problem['code']}: {$problem['message']}");
    }
}

/** One request. A read, and a request with an idempotency key, is repeated until its outcome is known. */
function call(string $method, string $path, ?array $body = null, ?string $key = null, int $tries = 10): array
{
    $headers = ['Authorization: Bearer ' . getenv('CENTAVO_API_KEY'), 'Content-Type: application/json'];
    if ($key !== null) {
        $headers[] = "Idempotency-Key: $key";
    }
    $repeats = $key !== null || $method === 'GET';
    for ($left = $tries - 1, $pause = 1; ; $left--, $pause = min(2 * $pause, 60)) {
        $wait = $pause; // 1, 2, 4, … seconds, at most 60, or longer where the answer says so
        $request = curl_init(getenv('CENTAVO_URL') . $path);
        curl_setopt_array($request, [
            CURLOPT_CUSTOMREQUEST => $method, CURLOPT_HTTPHEADER => $headers, CURLOPT_TIMEOUT => 30,
            CURLOPT_POSTFIELDS => $body === null ? '' : json_encode($body, JSON_THROW_ON_ERROR),
            CURLOPT_RETURNTRANSFER => true,
            CURLOPT_HEADERFUNCTION => function ($request, string $line) use (&$wait): int {
                if (preg_match('/^retry-after: *(\d+)/i', $line, $found)) {
                    $wait = max($wait, (int) $found[1]);
                }
                return strlen($line);
            },
        ]);
        $text = curl_exec($request);
        $status = curl_getinfo($request, CURLINFO_RESPONSE_CODE);
        $answer = is_string($text) ? json_decode($text, true) : null;
        if ($status < 400 && is_array($answer)) {
            return $answer;
        }
        $known = is_array($answer) && $status !== 503 && $answer['code'] !== 'idempotency_key_in_progress';
        if (!$left || ($known ? $status !== 429 : !$repeats)) {
            throw is_array($answer) ? new Refused($status, $answer) : new \RuntimeException(curl_error($request));
        }
        sleep($wait);
    }
}

/** All items of a list, page by page. */
function pages(string $path): \Generator
{
    for ($next = "$path?limit=100"; $next !== null; $next = $answer['next'] ?? null) {
        $answer = call('GET', $next);
        foreach ($answer['items'] as $item) {
            yield $item;
        }
    }
}

/** The event of a webhook; throws when the signature is wrong or too old. Names of headers are in small letters. */
function verified(array $headers, string $body, string $secret): array
{
    [$id, $sent] = [$headers['webhook-id'] ?? '', $headers['webhook-timestamp'] ?? ''];
    $key = base64_decode(substr($secret, strlen('whsec_')));
    $right = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$sent.$body", $key, true));
    foreach (explode(' ', $headers['webhook-signature'] ?? '') as $given) {
        if (hash_equals($right, $given) && abs(time() - (int) $sent) <= 300) {
            return json_decode($body, true, flags: JSON_THROW_ON_ERROR);
        }
    }
    throw new \UnexpectedValueException('not a webhook of ours');
}
