//! Programs of `bench/miri` in Rust that are about structs and collections.

use std::hint::black_box;

struct Queue {
    items: Vec<i64>,
    head: usize,
}

impl Queue {
    fn push(&mut self, x: i64) {
        self.items.push(x);
    }

    fn pop(&mut self) -> i64 {
        assert!(self.head < self.items.len(), "empty");
        let v = self.items[self.head];
        self.head += 1;
        v
    }

    fn is_empty(&self) -> bool {
        self.head >= self.items.len()
    }
}

struct Stack {
    items: [i64; 64],
    top: usize,
}

impl Stack {
    fn push(&mut self, x: i64) {
        assert!(self.top < 64, "full");
        self.items[self.top] = x;
        self.top += 1;
    }

    fn pop(&mut self) -> i64 {
        assert!(self.top > 0, "empty");
        self.top -= 1;
        self.items[self.top]
    }
}

pub(super) fn queues() -> f64 {
    let mut total = 0i64;
    for round in 0..black_box(20) {
        let mut q = Queue { items: Vec::new(), head: 0 };
        for i in 0..50_000i64 {
            q.push(i.wrapping_mul(round));
            if i % 3 == 0 {
                total = total.wrapping_add(q.pop());
            }
        }
        while !q.is_empty() {
            total = total.wrapping_add(q.pop());
        }
        let mut s = Stack { items: [0; 64], top: 0 };
        for i in 0..50_000 {
            s.push(i);
            s.push(round);
            total = total.wrapping_add(s.pop().wrapping_mul(s.pop()));
        }
    }
    total as f64
}

#[derive(Clone)]
struct Person {
    name: String,
    age: i64,
    city: i64,
}

pub(super) fn people() -> f64 {
    let person = |i: i64| Person { name: format!("p{i}"), age: i % 90, city: i % 10 };
    let people: Vec<Person> = (0..1000).map(person).collect();
    let mut total = 0i64;
    for round in 0..200 {
        let people = black_box(&people);
        let limit = round % 90;
        let old: Vec<&Person> = people.iter().filter(|p| p.age > limit).collect();
        let older = old.iter().map(|&p| Person { age: p.age + 1, ..p.clone() });
        let older: Vec<Person> = older.collect();
        for p in black_box(&older) {
            total += p.age;
        }
        let mut few = Vec::new();
        for p in people {
            if p.city == round % 10 {
                few.push(p);
            }
        }
        total += (few.len() + old.len()) as i64;
    }
    total += people[7].name.chars().count() as i64;
    total as f64
}

pub(super) fn search() -> f64 {
    fn ways(grid: &[Vec<i64>], n: i64) -> i64 {
        let mut distances = vec![vec![-1i64; n as usize]; n as usize];
        let mut queue = vec![0];
        let mut head = 0;
        distances[0][0] = 0;
        let (dx, dy) = ([1i64, -1, 0, 0], [0i64, 0, 1, -1]);
        while head < queue.len() {
            let at: i64 = queue[head];
            head += 1;
            let (x, y) = (at % n, at / n);
            for k in 0..4 {
                let (nx, ny) = (x + dx[k], y + dy[k]);
                let is_inside = nx >= 0 && ny >= 0 && nx < n && ny < n;
                let (row, column) = (ny as usize, nx as usize);
                if is_inside && grid[row][column] == 0 && distances[row][column] < 0 {
                    distances[row][column] = distances[y as usize][x as usize] + 1;
                    queue.push(ny * n + nx);
                }
            }
        }
        distances.iter().flatten().fold(0, |sum: i64, d| sum.wrapping_add(*d))
    }
    let n = black_box(200i64);
    let is_wall = |x: i64, y: i64| (x * 7 + y * 13) % 5 == 0 && x % 4 != 0;
    let row = |y: i64| (0..n).map(|x| i64::from(is_wall(x, y))).collect();
    let mut grid: Vec<Vec<i64>> = (0..n).map(row).collect();
    let mut total = 0i64;
    for r in 0..10 {
        grid[(r % n) as usize][((r * 31 + 1) % n) as usize] = 1;
        total = total.wrapping_add(ways(&grid, n));
    }
    total as f64
}

struct Event {
    time: i64,
    kind: i64,
    who: i64,
}

pub(super) fn events() -> f64 {
    let mut total = 0i64;
    for _ in 0..black_box(100) {
        let first = (0..100).map(|i| Event { time: i * 37 % 101, kind: i % 3, who: i });
        let mut events: Vec<Event> = first.collect();
        let mut steps = 0;
        while !events.is_empty() && steps < 2000 {
            let mut at = 0;
            for i in 1..events.len() {
                if events[i].time < events[at].time {
                    at = i;
                }
            }
            let e = events.swap_remove(at);
            steps += 1;
            total += e.time % 10 + e.who;
            match e.kind {
                0 => events.push(Event { time: e.time + 10 + e.who % 7, kind: 1, who: e.who }),
                1 => events.push(Event { time: e.time + 5, kind: 2, who: e.who + 1 }),
                _ if steps % 2 == 0 => {
                    events.push(Event { time: e.time + 3, kind: 0, who: e.who });
                }
                _ => {}
            }
        }
    }
    total as f64
}

struct Job {
    cost: i64,
    id: i64,
}

fn put(jobs: &mut Vec<Job>, job: Job) {
    jobs.push(job);
    let mut i = jobs.len() - 1;
    while i > 0 {
        let parent = (i - 1) / 2;
        if jobs[parent].cost <= jobs[i].cost {
            break;
        }
        jobs.swap(parent, i);
        i = parent;
    }
}

fn take(jobs: &mut Vec<Job>) -> Job {
    let top = jobs.swap_remove(0);
    let n = jobs.len();
    let mut i = 0;
    loop {
        let (left, mut least) = (2 * i + 1, i);
        if left < n && jobs[left].cost < jobs[least].cost {
            least = left;
        }
        if left + 1 < n && jobs[left + 1].cost < jobs[least].cost {
            least = left + 1;
        }
        if least == i {
            return top;
        }
        jobs.swap(least, i);
        i = least;
    }
}

pub(super) fn heaps() -> f64 {
    let mut jobs = Vec::new();
    let (mut seed, mut total) = (black_box(12345i64), 0i64);
    for _ in 0..20 {
        for id in 0..10_000 {
            seed = (seed * 1_103_515_245 + 12345) % 2_147_483_648;
            put(&mut jobs, Job { cost: seed % 100_000, id });
        }
        for i in 0..10_000 {
            let job = take(&mut jobs);
            total = total.wrapping_add(job.cost * (i % 7) + job.id);
        }
    }
    total as f64
}
