//! An opened device: its queue, what it reports, and the order of its work.
//!
//! The library ends the process when work that is wrong is submitted. So everything that can be
//! wrong happens inside error scopes ([`Core::scoped`]), and nothing is submitted after an error.

use super::api::{
    ALLOW_PROCESS_EVENTS, Api, CallbackInfo, DeviceDescriptor, Object, QueueDescriptor, SUCCESS,
    StringView, UncapturedErrorInfo, UserData, error_type, feature,
};
use super::error::{error, reported};
use super::instance::{Adapter, Instance};
use crate::gpu::device::Serial;
use crate::gpu::error::{ErrorKind, GpuError, GpuResult};
use magpie_types::kernel::DeviceFeatures;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often events are processed while a callback is awaited that needs no work of the device.
const MAX_ROUNDS: usize = 10_000;

/// How many submissions may be under way; a host that runs further ahead waits.
const MAX_PENDING: u64 = 64;

/// Launches that go out in one submission.
const MAX_BATCH: u32 = 64;

/// What callbacks write; they may come from any thread.
#[derive(Default)]
struct Reports {
    /// The first fault that no error scope caught.
    fault: Mutex<Option<GpuError>>,
    /// Why the device is gone.
    lost: Mutex<Option<String>>,
    /// The newest serial that has completed.
    completed: AtomicU64,
}

/// Launches on their way into a submission.
pub(super) struct Batch {
    pub(super) serial: Serial,
    encoder: Object,
    pub(super) pass: Object,
    pub(super) launches: u32,
}

// SAFETY: the library's objects may be used from any thread.
unsafe impl Send for Batch {}

/// A device of the library.
pub(super) struct Core {
    instance: Arc<Instance>,
    pub(super) device: Object,
    pub(super) queue: Object,
    pub(super) label: String,
    /// Dynamic offsets of uniform blocks are multiples of this.
    pub(super) uniform_alignment: u32,
    reports: Arc<Reports>,
    /// The reference to `reports` that the library has.
    shared: *const Reports,
    /// The serial of the newest work, submitted or not.
    newest: AtomicU64,
    /// Everything up to this serial is submitted.
    submitted: AtomicU64,
    /// Launches that are not submitted yet; one thread at a time records and submits.
    batch: Mutex<Option<Batch>>,
    /// One thread at a time has error scopes open.
    scopes: Mutex<()>,
}

// SAFETY: the library's objects may be used from any thread; `shared` is read by callbacks only.
unsafe impl Send for Core {}
// SAFETY: as above.
unsafe impl Sync for Core {}

impl Core {
    /// Opens the device of an adapter, with everything it offers that kernels use.
    pub(super) fn open(adapter: &Adapter) -> GpuResult<Core> {
        let instance = &adapter.instance;
        let api = &instance.api;
        let mut features = Vec::new();
        if adapter.properties.features.contains(DeviceFeatures::FLOAT16) {
            features.push(feature::SHADER_F16);
        }
        if adapter.properties.features.contains(DeviceFeatures::SUBGROUP) {
            features.push(feature::NATIVE_SUBGROUP);
        }
        let reports = Arc::<Reports>::default();
        let shared = Arc::into_raw(Arc::clone(&reports));
        let descriptor = DeviceDescriptor {
            next: ptr::null(),
            label: StringView::NONE,
            feature_count: features.len(),
            features: features.as_ptr(),
            limits: &adapter.limits,
            queue: QueueDescriptor { next: ptr::null(), label: StringView::NONE },
            lost: CallbackInfo {
                next: ptr::null(),
                mode: ALLOW_PROCESS_EVENTS,
                callback: on_lost,
                userdata1: shared.cast_mut().cast(),
                userdata2: ptr::null_mut(),
            },
            error: UncapturedErrorInfo {
                next: ptr::null(),
                callback: on_error,
                userdata1: shared.cast_mut().cast(),
                userdata2: ptr::null_mut(),
            },
        };
        let answer = Answer::new();
        let callback = CallbackInfo {
            next: ptr::null(),
            mode: ALLOW_PROCESS_EVENTS,
            callback: on_device as super::api::RequestDevice,
            userdata1: answer.for_library(),
            userdata2: ptr::null_mut(),
        };
        // SAFETY: adapter, descriptor and callback are valid; the answer lives until it is given.
        unsafe { (api.request_device)(adapter.handle, &descriptor, callback) };
        let label = adapter.properties.label();
        let no_answer = (0, 0, "the library gives no answer".to_string());
        let (status, device, message) = answer.wait(instance).unwrap_or(no_answer);
        let device = device as Object;
        if status != SUCCESS || device.is_null() {
            let why = format!("open {label}: {message}");
            return Err(error(ErrorKind::BackendUnavailable, why));
        }
        // SAFETY: the device is valid.
        let queue = unsafe { (api.device_queue)(device) };
        Ok(Core {
            instance: Arc::clone(instance),
            device,
            queue,
            label,
            uniform_alignment: adapter.limits.uniform_alignment.max(16),
            reports,
            shared,
            newest: AtomicU64::new(0),
            submitted: AtomicU64::new(0),
            batch: Mutex::new(None),
            scopes: Mutex::new(()),
        })
    }

    pub(super) fn api(&self) -> &Api {
        &self.instance.api
    }

    /// Holds off other threads while work is recorded and submitted.
    pub(super) fn record(&self) -> MutexGuard<'_, Option<Batch>> {
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The batch that the next launch goes to.
    pub(super) fn open_batch<'b>(&self, batch: &'b mut Option<Batch>) -> &'b mut Batch {
        batch.get_or_insert_with(|| {
            let (api, serial) = (self.api(), self.next_serial());
            // SAFETY: the device is valid, and so is the encoder, which the batch ends.
            let (encoder, pass) = unsafe {
                let encoder = (api.create_encoder)(self.device, ptr::null());
                (encoder, (api.begin_pass)(encoder, ptr::null()))
            };
            Batch { serial, encoder, pass, launches: 0 }
        })
    }

    /// Submits the open batch when it is full or `now`.
    ///
    /// # Errors
    /// What the library finds wrong with it; nothing of it is done then.
    pub(super) fn flush(&self, batch: &mut Option<Batch>, now: bool) -> GpuResult<()> {
        let Some(Batch { serial, encoder, pass, .. }) =
            batch.take_if(|batch| now || batch.launches >= MAX_BATCH)
        else {
            return Ok(());
        };
        let what = format!("launches on {}", self.label);
        let finished = self.scoped(&what, ErrorKind::LaunchFailed, |api| {
            // SAFETY: pass and encoder are valid and end here.
            unsafe {
                (api.pass_end)(pass);
                (api.pass_release)(pass);
                let commands = (api.encoder_finish)(encoder, ptr::null());
                (api.encoder_release)(encoder);
                commands
            }
        });
        match finished {
            Ok(commands) => {
                self.submit(commands, serial);
                Ok(())
            }
            Err(error) => {
                self.submitted.fetch_max(serial.0, Ordering::Relaxed);
                self.reports.completed.fetch_max(serial.0, Ordering::Release);
                Err(error)
            }
        }
    }

    /// Whether work may still be in the open batch.
    pub(super) fn is_open(&self, serial: Serial) -> bool {
        serial.0 > self.submitted.load(Ordering::Relaxed)
    }

    /// The serial of work that is recorded now.
    pub(super) fn next_serial(&self) -> Serial {
        Serial(self.newest.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Does something that the library may find wrong.
    ///
    /// # Errors
    /// What it reports, as `otherwise` unless memory was lacking.
    pub(super) fn scoped<T>(
        &self,
        what: &str,
        otherwise: ErrorKind,
        action: impl FnOnce(&Api) -> T,
    ) -> GpuResult<T> {
        self.check_alive()?;
        let _scopes = self.scopes.lock().unwrap_or_else(PoisonError::into_inner);
        let api = self.api();
        for filter in error_type::FILTERS {
            // SAFETY: the device is valid.
            unsafe { (api.push_error_scope)(self.device, filter) };
        }
        let done = action(api);
        let mut failure = None;
        for _ in error_type::FILTERS {
            let answer = Answer::new();
            let callback = CallbackInfo {
                next: ptr::null(),
                mode: ALLOW_PROCESS_EVENTS,
                callback: on_scope as super::api::PopErrorScope,
                userdata1: answer.for_library(),
                userdata2: ptr::null_mut(),
            };
            // SAFETY: as many scopes are open; the answer lives until it is given.
            unsafe { (api.pop_error_scope)(self.device, callback) };
            let Some((status, kind, message)) = answer.wait(&self.instance) else {
                failure = Some(error(ErrorKind::DriverError, format!("{what}: no answer")));
                continue;
            };
            if status != SUCCESS || kind as u32 != error_type::NONE {
                failure = Some(reported(kind as u32, &message, what, otherwise));
            }
        }
        match failure {
            Some(failure) => Err(failure),
            None => Ok(done),
        }
    }

    /// Submits recorded commands, which no error scope found wrong.
    pub(super) fn submit(&self, commands: Object, serial: Serial) {
        let api = self.api();
        // SAFETY: queue and commands are valid; commands are submitted once.
        unsafe {
            (api.submit)(self.queue, 1, &commands);
            (api.commands_release)(commands);
        }
        self.submitted.fetch_max(serial.0, Ordering::Relaxed);
        let done = CallbackInfo {
            next: ptr::null(),
            mode: ALLOW_PROCESS_EVENTS,
            callback: on_done as super::api::WorkDone,
            userdata1: Arc::into_raw(Arc::clone(&self.reports)).cast_mut().cast(),
            userdata2: serial.0 as usize as UserData,
        };
        // SAFETY: the callback takes the reference that it is given.
        unsafe { (api.on_work_done)(self.queue, done) };
        if serial.0.saturating_sub(self.reports.completed.load(Ordering::Relaxed)) > MAX_PENDING {
            // SAFETY: the device is valid; without an index the call is about all work.
            unsafe { (api.poll)(self.device, 1, ptr::null()) };
        }
    }

    /// The serial of the newest work.
    pub(super) fn newest(&self) -> Serial {
        Serial(self.newest.load(Ordering::Relaxed))
    }

    fn is_done(&self, serial: Serial) -> bool {
        self.reports.completed.load(Ordering::Acquire) >= serial.0
    }

    /// Waits for work; `false` when the time ran out first.
    ///
    /// # Errors
    /// Faults of the work.
    pub(super) fn wait(&self, serial: Serial, limit: Option<Duration>) -> GpuResult<bool> {
        if self.is_open(serial) {
            self.flush(&mut self.record(), true)?;
        }
        let start = Instant::now();
        let mut done = self.is_done(serial);
        while !done {
            self.check_alive()?;
            let block = limit.is_none();
            // SAFETY: the device is valid; without an index the call is about all work.
            unsafe { (self.api().poll)(self.device, block.into(), ptr::null()) };
            done = self.is_done(serial);
            if !done && limit.is_some_and(|limit| start.elapsed() >= limit) {
                return Ok(false);
            }
            if !done {
                std::thread::sleep(Duration::from_micros(20));
            }
        }
        let mut fault = self.reports.fault.lock().unwrap_or_else(PoisonError::into_inner);
        match fault.take() {
            Some(fault) => Err(fault),
            None => self.check_alive().map(|()| true),
        }
    }

    /// # Errors
    /// [`ErrorKind::DeviceLost`].
    pub(super) fn check_alive(&self) -> GpuResult<()> {
        let lost = self.reports.lost.lock().unwrap_or_else(PoisonError::into_inner);
        match &*lost {
            Some(why) => {
                Err(error(ErrorKind::DeviceLost, format!("{} is lost: {why}", self.label)))
            }
            None => Ok(()),
        }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        // Nobody is left to hear of an error.
        let _ = self.flush(&mut self.record(), true);
        let api = &self.instance.api;
        // SAFETY: all work ends first; then nobody uses the device any more, and callbacks about it
        // come no later than its release.
        unsafe {
            (api.poll)(self.device, 1, ptr::null());
            (api.queue_release)(self.queue);
            (api.device_release)(self.device);
            (api.process_events)(self.instance.handle);
            drop(Arc::from_raw(self.shared));
        }
    }
}

/// What a callback answers: two numbers and a text.
type Told = (u32, usize, String);

/// A place for the answer of a callback that is called once. It is shared with the library, which
/// may answer late, or never: then the place stays.
struct Answer(Arc<Mutex<Option<Told>>>);

impl Answer {
    fn new() -> Answer {
        Answer(Arc::default())
    }

    fn for_library(&self) -> UserData {
        Arc::into_raw(Arc::clone(&self.0)).cast_mut().cast()
    }

    /// Processes events until the answer is there.
    fn wait(self, instance: &Instance) -> Option<Told> {
        for _ in 0..MAX_ROUNDS {
            if let Some(told) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
                return Some(told);
            }
            // SAFETY: the instance is valid.
            unsafe { (instance.api.process_events)(instance.handle) };
        }
        None
    }

    /// Gives the answer.
    ///
    /// # Safety
    /// `place` comes from [`Answer::for_library`] and is used once; the text is valid.
    unsafe fn tell(place: UserData, status: u32, value: usize, message: StringView) {
        // SAFETY: as the caller promises.
        let (place, message) = unsafe {
            (Arc::from_raw(place.cast_const().cast::<Mutex<Option<Told>>>()), message.to_text())
        };
        *place.lock().unwrap_or_else(PoisonError::into_inner) = Some((status, value, message));
    }
}

unsafe extern "C" fn on_device(
    status: u32,
    device: Object,
    message: StringView,
    place: UserData,
    _: UserData,
) {
    // SAFETY: the place is that of `Core::open`.
    unsafe { Answer::tell(place, status, device as usize, message) };
}

unsafe extern "C" fn on_scope(
    status: u32,
    kind: u32,
    message: StringView,
    place: UserData,
    _: UserData,
) {
    // SAFETY: the place is that of `Core::scoped`.
    unsafe { Answer::tell(place, status, kind as usize, message) };
}

unsafe extern "C" fn on_error(
    _: *const Object,
    kind: u32,
    message: StringView,
    reports: UserData,
    _: UserData,
) {
    // SAFETY: the reference of `Core::open`, which lives as long as the device.
    let (reports, message) = unsafe { (&*reports.cast::<Reports>(), message.to_text()) };
    let fault = reported(kind, &message, "queued work", ErrorKind::DriverError);
    reports.fault.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(fault);
}

unsafe extern "C" fn on_lost(
    _: *const Object,
    _reason: u32,
    message: StringView,
    reports: UserData,
    _: UserData,
) {
    // SAFETY: the reference of `Core::open`, which lives as long as the device.
    let (reports, message) = unsafe { (&*reports.cast::<Reports>(), message.to_text()) };
    reports.lost.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(message);
}

unsafe extern "C" fn on_done(_: u32, _: StringView, reports: UserData, serial: UserData) {
    // SAFETY: a reference of its own, from `Core::submit`.
    let reports = unsafe { Arc::from_raw(reports.cast_const().cast::<Reports>()) };
    reports.completed.fetch_max(serial as usize as u64, Ordering::Release);
}
