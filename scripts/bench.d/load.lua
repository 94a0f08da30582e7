-- wrk's side of a row. After the URL: -- KIND ACCOUNTS RUN [DELAY]
--   KIND      health, login, read, write, share, token, batch (of a hundred items), get or put
--   ACCOUNTS  a file with a line for each account: userid, password key, token, item, body, share, with tabs between;
--             for get and put, what stands as the item is the path; for put, as the share the head of a vault's log, or -
--   RUN       a digit that is another one in each run, so that no write repeats what an earlier run left
--   DELAY     how many milliseconds a connection waits before each request, in the mean; not at all without it

local threads = {}

function setup(thread)
    thread:set("number", #threads)
    table.insert(threads, thread)
end

local accounts, next_account, count, kind, run = {}, 0, 0, nil, "0"

local function json(token)
    return { ["Content-Type"] = "application/json", Authorization = token and "Bearer " .. token }
end

local make = {
    health = function() return wrk.format("GET", "/v1/health/live") end,
    login = function(a)
        local body = string.format('{"userid":"%s","passwordKey":"%s"}', a.userid, a.key)
        return wrk.format("POST", "/v1/sessions", json(), body)
    end,
    read = function(a) return wrk.format("GET", "/v1/items/" .. a.item, json(a.token)) end,
    share = function(a) return wrk.format("GET", "/v1/shares/" .. a.share) end,
    token = function(a) return wrk.format("POST", "/v1/tokens", json(a.token), '{"audience":"bench"}') end,
    get = function(a) return wrk.format("GET", a.item, json(a.token)) end,
    -- A hundred items, the same ones each time, with a stamp in each that request() replaces.
    batch = function(a)
        local operations = {}
        for number = 1, 100 do
            local id = a.item:sub(1, 24) .. string.format("%012x", number)
            operations[number] = string.format(
                '{"op":"put","id":"%s","format":"aes-256-gcm","body":"########%s"}', id, a.body:sub(9, 256))
        end
        local body = '{"operations":[' .. table.concat(operations, ",") .. "]}"
        return wrk.format("POST", "/v1/items/batch", json(a.token), body)
    end,
}

-- Everything but the first characters of the sealed bytes is made once; digits are base64 too.
local function write_template(a)
    local headers = json(a.token)
    headers["If-Match"] = "*"
    local body = '{"format":"aes-256-gcm","body":"' .. a.body .. '"}'
    local whole = wrk.format("PUT", "/v1/items/" .. a.item, headers, body)
    local start = whole:find(a.body, 1, true)
    return { whole:sub(1, start - 1), whole:sub(start + 8) }
end

-- An item in the format of shared vaults, whose first bytes stay.
local function put_template(a)
    local headers = json(a.token)
    headers["If-Match"] = "*"
    if a.share ~= "-" then headers["Vault-Head"] = a.share end
    local body = '{"format":"saltern-1","collection":"bench","body":"' .. a.body .. '"}'
    local whole = wrk.format("PUT", a.item, headers, body)
    local start = whole:find(a.body, 1, true) + 64
    return { whole:sub(1, start - 1), whole:sub(start + 8) }
end

local templates = { write = write_template, put = put_template }

function init(words)
    kind, run = words[1], words[3]
    local mean = tonumber(words[4])
    -- wrk asks a function of this name if there is one.
    if mean then delay = function() return math.random(0, 2 * mean) end end
    if kind == "health" then
        accounts = { make.health() }
        return
    end
    for line in io.lines(words[2]) do
        local userid, key, token, item, body, share = line:match("^(%S+)\t(%S+)\t(%S+)\t(%S+)\t(%S+)\t(%S+)$")
        local a = { userid = userid, key = key, token = token, item = item, body = body, share = share }
        table.insert(accounts, (templates[kind] or make[kind])(a))
    end
    -- The threads walk through the accounts at a distance.
    next_account = math.floor(#accounts / 2) * number
end

function request()
    next_account = next_account % #accounts + 1
    local made = accounts[next_account]
    if not templates[kind] and kind ~= "batch" then return made end
    count = count + 1
    if kind == "batch" then
        return (made:gsub("########", run .. number .. string.format("%06d", count % 1000000)))
    end
    return made[1] .. run .. number .. string.format("%06d", count % 1000000) .. made[2]
end

function done(summary, latency)
    local errors = summary.errors
    print(string.format(
        'RESULT {"done":%d,"seconds":%.6f,"refused":%d,"failed":%d,"p50":%.4f,"p99":%.4f}',
        summary.requests, summary.duration / 1e6, errors.status,
        errors.connect + errors.read + errors.write + errors.timeout,
        latency:percentile(50) / 1000, latency:percentile(99) / 1000))
end
