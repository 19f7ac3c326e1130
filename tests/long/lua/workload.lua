-- workload.lua: what host.c runs: recursion, closures, strings, errors through blocks, coroutines
-- that end, are
-- abandoned or fail, finalizers, tail calls, memory that is refused. It counts its own calls, and
-- says them at the end.
-- Nothing in it hangs on the order of a hash table, so its result is the same in each run.

local calls = {}
local functions = {}

local function counting(name, f)
  functions[name] = f
  calls[name] = 0
  return f
end

local sum = 0
local function add(n)
  sum = (sum * 31 + n) % 1000000007
end

local fib
fib = counting("fib", function(n)
  calls.fib = calls.fib + 1
  if n < 2 then return n end
  return fib(n - 1) + fib(n - 2)
end)

local ackermann
ackermann = counting("ackermann", function(m, n)
  calls.ackermann = calls.ackermann + 1
  if m == 0 then return n + 1 end
  if n == 0 then return ackermann(m - 1, 1) end
  return ackermann(m - 1, ackermann(m, n - 1))
end)

local even, odd
even = counting("even", function(n)
  calls.even = calls.even + 1
  if n == 0 then return true end
  return odd(n - 1)
end)
odd = counting("odd", function(n)
  calls.odd = calls.odd + 1
  if n == 0 then return false end
  return even(n - 1)
end)

local fail = counting("fail", function(depth)
  calls.fail = calls.fail + 1
  if depth == 0 then error({code = 7}) end
  functions.fail(depth - 1)
  return nil -- no tail call
end)

local function recursion()
  add(fib(16))
  add(ackermann(2, 5))
  add(even(301) and 1 or 0)
  local parts = {["a\"b\n"] = fib, ["größe"] = fib, ["\u{2028}"] = fib}
  add(parts["a\"b\n"](5) + parts["größe"](6) + parts["\u{2028}"](7))
end

local function closures()
  local makers = {}
  for i = 1, 200 do
    makers[i] = function(x) return x * i end
  end
  for i = 1, 200 do add(makers[i](i)) end
  table.sort(makers, function(a, b) return a(1) > b(1) end)
  add(makers[1](3))
end

local function strings()
  local pieces = {}
  for i = 1, 2000 do pieces[#pieces + 1] = string.format("%d:%s", i, string.rep("x", i % 17)) end
  local text = table.concat(pieces, ",")
  add(#text)
  add(select(2, string.gsub(text, "%d+", function(digits) return #digits > 3 and digits or nil end)))
  local grown = ""
  for i = 1, 300 do grown = grown .. i end
  add(#grown)
  for word in string.gmatch(text, "x+") do add(#word) end
end

-- An error out of three blocks that hold each other, an older block around each time.
local function errors_each()
  for i = 1, 100 do
    host.block("around", function()
      local ok, what = pcall(host.block, "a", function()
        host.block("b", function() host.block("c", fail, i % 5) end)
      end)
      add(ok and 1 or what.code)
      host.block("after", add, i)
    end)
  end
end

-- Many errors in one block: what they left stays open until that block ends.
local function errors_many()
  for i = 1, 500 do
    local ok, what = pcall(host.block, "left " .. i % 10, fail, 0)
    add(ok and 1 or what.code)
    host.block("between", add, i)
  end
end

local generate = counting("generate", function(n)
  calls.generate = calls.generate + 1
  for i = 1, n do coroutine.yield(i) end
  return n
end)

local function coroutines()
  for value in coroutine.wrap(function() generate(50) end) do add(value) end
  local all = {}
  for i = 1, 20 do all[i] = coroutine.create(function(n) generate(n) return n end) end
  for round = 1, 15 do
    for i = 1, 20 do
      if coroutine.status(all[i]) == "suspended" then
        local _, value = coroutine.resume(all[i], i)
        add(value or 0)
      end
    end
  end
end

local function coroutines_left()
  for i = 1, 150 do
    local co = coroutine.create(function() host.block("never", function() return 1 end) generate(3) end)
    coroutine.resume(co)
    add(coroutine.resume(co) and 1 or 0)
  end
  for i = 1, 30 do
    local co = coroutine.create(function() generate(0) fail(2) end)
    local ok, what = coroutine.resume(co)
    add(ok and 1 or what.code)
    coroutine.close(co)
  end
end

-- A yield that leaves a block of C by longjmp(), and one that no C function lets through.
local function coroutines_blocks()
  for i = 1, 40 do
    host.block("resumes", function()
      local co = coroutine.create(function()
        host.yielding_block("yields", function() coroutine.yield(1) end)
        return 2
      end)
      add(select(2, coroutine.resume(co)))
      add(select(2, coroutine.resume(co)))
      local caught = coroutine.create(function() host.block("refused", coroutine.yield, 1) end)
      add(coroutine.resume(caught) and 1 or 0)
    end)
  end
end

-- Lua calls no hook in a finalizer: the script alone counts these.
local finalized = 0
local function finalize() finalized = finalized + 1 end

local function collections()
  for i = 1, 300 do setmetatable({}, {__gc = finalize}) end
  collectgarbage()
  host.quiet()
  for i = 1, 20 do
    local kept = {}
    for j = 1, 200 do kept[j] = {j, {j}} end
    collectgarbage("step")
  end
  collectgarbage()
  add(finalized)
end

local function no_memory()
  for i = 1, 10 do
    host.limit(200000)
    local ok, what = pcall(host.block, "too much", function()
      local all = {}
      for j = 1, 1000000 do all[j] = {j} end
    end)
    host.limit(0)
    add(ok and 1 or #tostring(what))
    collectgarbage()
  end
end

local function names()
  for i = 1, 3000 do host.block("item " .. i, add, i) end
  for i = 1, 3000, 3 do host.block("item " .. i, add, i) end
  host.block(string.rep("long ", 60), add, 1)
  for i = 1, 20 do host.instant("instant " .. i % 3) end
end

local function work()
  for _, part in ipairs({"recursion", recursion, "closures", closures, "strings", strings, "names", names,
                         "collections", collections, "errors each", errors_each, "errors many", errors_many,
                         "coroutines", coroutines, "coroutines left", coroutines_left,
                         "coroutines and blocks", coroutines_blocks, "no memory", no_memory}) do
    if type(part) == "string" then
      functions.part = part
    elseif not parts or string.find(parts, "[" .. functions.part .. "]", 1, true) then
      host.block(functions.part, part)
      collectgarbage()
      host.quiet()
    end
  end
end

repeat work() until not endless

for _, name in ipairs({"fib", "ackermann", "even", "odd", "fail", "generate"}) do
  host.counted(functions[name], calls[name])
end
return string.format("%d %d", sum, index)
