//! The MPI that the program uses: which of the three binary interfaces it has, and those of its functions that are asked about files, types and
//! requests. All are PMPI functions by pointer: no tool, and none of our own symbols, comes in between.
//!
//! Handles are machine words. MPICH's are ints, of which only the lower half counts; those of Open MPI and of the standard ABI (MPI 5.0, chapter 20) are
//! pointers, or small numbers in place of them.

pub use super::functions::Handle;
use super::functions::{Meeting, Unsieving, meeting, unsieving};
use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char, c_void};
use core::sync::atomic::{AtomicU32, Ordering};
use stripewise_engine::Operation;
use stripewise_trace::datatype::{combiner, distribution, order};

/// Who made the interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// MPICH and its kin (Intel MPI, MVAPICH, Cray MPICH): the MPICH ABI initiative's libmpi.so.12.
    Mpich,
    /// Open MPI and its kin.
    Open,
    /// The standard ABI, of any MPI.
    Standard,
}

type OfType = unsafe extern "C" fn(Handle, *mut i64) -> i32;

/// The functions that hints are asked with: an MPI has all or is asked nothing.
#[derive(Clone, Copy)]
pub struct Asking {
    pub keys: unsafe extern "C" fn(Handle, *mut i32) -> i32,
    pub key: unsafe extern "C" fn(Handle, i32, *mut c_char) -> i32,
    pub of_file: unsafe extern "C" fn(Handle, *mut Handle) -> i32,
    pub free: unsafe extern "C" fn(*mut Handle) -> i32,
}

/// What is called.
#[derive(Clone, Copy)]
pub struct Library {
    pub family: Family,
    pub byte: Handle,
    pub world: Handle,
    info_null: Handle,
    pub type_size_x: OfType,
    pub type_get_extent_x: unsafe extern "C" fn(Handle, *mut i64, *mut i64) -> i32,
    pub type_get_true_extent_x: unsafe extern "C" fn(Handle, *mut i64, *mut i64) -> i32,
    pub get_elements_x: unsafe extern "C" fn(*const c_void, Handle, *mut i64) -> i32,
    set_elements_x: unsafe extern "C" fn(*mut c_void, Handle, i64) -> i32,
    set_cancelled: unsafe extern "C" fn(*mut c_void, i32) -> i32,
    pub get_position: unsafe extern "C" fn(Handle, *mut i64) -> i32,
    seek: unsafe extern "C" fn(Handle, i64, i32) -> i32,
    read_at: unsafe extern "C" fn(Handle, i64, *mut c_void, i32, Handle, *mut c_void) -> i32,
    pub error_class: unsafe extern "C" fn(i32, *mut i32) -> i32,
    comm_null: Handle,
    initialized: Option<unsafe extern "C" fn(*mut i32) -> i32>,
    finalized: Option<unsafe extern "C" fn(*mut i32) -> i32>,
    /// What makes a collective read or write independently, by [`Independent`]'s places.
    independent: [*mut c_void; 8],
    pub comm_size: unsafe extern "C" fn(Handle, *mut i32) -> i32,
    pub comm_rank: unsafe extern "C" fn(Handle, *mut i32) -> i32,
    pub comm_group: unsafe extern "C" fn(Handle, *mut Handle) -> i32,
    pub group_translate_ranks: unsafe extern "C" fn(Handle, i32, *const i32, Handle, *mut i32) -> i32,
    pub meeting: Option<Meeting>,
    pub unsieving: Option<Unsieving>,
    pub type_null: Handle,
    pub group_free: unsafe extern "C" fn(*mut Handle) -> i32,
    pub type_free: unsafe extern "C" fn(*mut Handle) -> i32,
    pub type_contiguous: unsafe extern "C" fn(i32, Handle, *mut Handle) -> i32,
    pub type_struct: unsafe extern "C" fn(i32, *const i32, *const isize, *const Handle, *mut Handle) -> i32,
    pub type_commit: unsafe extern "C" fn(*mut Handle) -> i32,
    /// None: not all of them are there.
    pub asking: Option<Asking>,
    info_length: Option<unsafe extern "C" fn(Handle, *const c_char, *mut i32, *mut i32) -> i32>,
    info_get: Option<unsafe extern "C" fn(Handle, *const c_char, i32, *mut c_char, *mut i32) -> i32>,
    pub envelope: unsafe extern "C" fn(Handle, *mut i32, *mut i32, *mut i32, *mut i32) -> i32,
    pub contents: unsafe extern "C" fn(Handle, i32, i32, i32, *mut i32, *mut isize, *mut Handle) -> i32,
    /// Both, of types that may have large counts, where the library has such types.
    pub envelope_c: Option<unsafe extern "C" fn(Handle, *mut i64, *mut i64, *mut i64, *mut i64, *mut i32) -> i32>,
    pub contents_c: Option<unsafe extern "C" fn(Handle, i64, i64, i64, i64, *mut i32, *mut isize, *mut i64, *mut Handle) -> i32>,
}

/// `MPI_File_` and this, with counts of an int and larger ones.
const INDEPENDENT: [&CStr; 8] = [
    c"MPI_File_read_at",
    c"MPI_File_read_at_c",
    c"MPI_File_read",
    c"MPI_File_read_c",
    c"MPI_File_write_at",
    c"MPI_File_write_at_c",
    c"MPI_File_write",
    c"MPI_File_write_c",
];

struct Cell(UnsafeCell<Option<Library>>);
// SAFETY: written by who takes STATE from UNKNOWN to LEARNING, and not after KNOWN.
unsafe impl Sync for Cell {}

static LIBRARY: Cell = Cell(UnsafeCell::new(None));
static STATE: AtomicU32 = AtomicU32::new(UNKNOWN);
const UNKNOWN: u32 = 0;
const LEARNING: u32 = 1;
const KNOWN: u32 = 2;

unsafe extern "C" {
    fn sw_mpi_symbol(scope: *mut c_void, name: *const c_char) -> *mut c_void;
    fn sw_mpi_soname(symbol: *const c_void) -> *const c_char;
}

/// The program's MPI; none: not known yet, or of no family that we know.
#[inline]
pub fn get() -> Option<&'static Library> {
    // SAFETY: not written any more once KNOWN.
    if STATE.load(Ordering::Acquire) == KNOWN { unsafe { (*LIBRARY.0.get()).as_ref() } } else { None }
}

/// Looks at the MPI whose symbols are found in `scope`, once: a process has one.
///
/// # Safety
/// A handle of the loader's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_mpi_learn(scope: *mut c_void) {
    if STATE.compare_exchange(UNKNOWN, LEARNING, Ordering::Acquire, Ordering::Relaxed).is_ok() {
        // SAFETY: LEARNING is ours alone.
        unsafe { *LIBRARY.0.get() = find(scope) };
        STATE.store(KNOWN, Ordering::Release);
    }
}

/// Whether the program's MPI is known, of whatever family.
#[unsafe(no_mangle)]
pub extern "C" fn sw_mpi_is_known() -> i32 {
    i32::from(STATE.load(Ordering::Acquire) == KNOWN)
}

fn family_of(soname: &[u8], is_open: bool) -> Option<Family> {
    if soname.starts_with(b"libmpi_abi.so") {
        Some(Family::Standard)
    } else if is_open {
        Some(Family::Open)
    } else if soname.starts_with(b"libmp") && soname.ends_with(b".so.12") {
        Some(Family::Mpich)
    } else {
        None
    }
}

// The fields of `Library` are the prototypes that symbols are taken for.
#[allow(clippy::missing_transmute_annotations)]
unsafe fn find(scope: *mut c_void) -> Option<Library> {
    // SAFETY: a C string.
    let symbol = |name: &CStr| unsafe { sw_mpi_symbol(scope, name.as_ptr()) };
    macro_rules! function {
        ($name:literal) => {{
            let found = symbol($name);
            // SAFETY: MPI's own prototypes, which these fields have; null is none.
            if found.is_null() { None } else { Some(unsafe { core::mem::transmute(found) }) }
        }};
    }
    // A tool may stand before MPI_File calls; nobody stands before this one.
    let known = symbol(c"PMPI_Get_elements_x");
    // SAFETY: an address in a loaded object, or null.
    let soname = unsafe { sw_mpi_soname(known) };
    // SAFETY: a C string of a loaded object, or null.
    let soname = if soname.is_null() { &[] } else { unsafe { CStr::from_ptr(soname) }.to_bytes() };
    // Open MPI's constants are objects, which a program that is linked with it may have copies of: then these are the ones that count.
    let object = |name: &CStr| {
        // SAFETY: a C string; null is RTLD_DEFAULT.
        let found = unsafe { sw_mpi_symbol(core::ptr::null_mut(), name.as_ptr()) };
        if found.is_null() { symbol(name) } else { found }
    };
    let (open_byte, open_world) = (object(c"ompi_mpi_byte"), object(c"ompi_mpi_comm_world"));
    let family = family_of(soname, !open_byte.is_null())?;
    let (byte, world) = match family {
        Family::Mpich => (0x4c00_010d, 0x4400_0000),
        Family::Open => (open_byte as usize, open_world as usize),
        Family::Standard => (0x247, 0x101),
    };
    let (info_null, comm_null, type_null, errors_return) = match family {
        Family::Mpich => (0x1c00_0000, 0x0400_0000, 0x0c00_0000, 0x5400_0001),
        Family::Open => {
            let null = |name: &CStr| object(name) as usize;
            (null(c"ompi_mpi_info_null"), null(c"ompi_mpi_comm_null"), null(c"ompi_mpi_datatype_null"), null(c"ompi_mpi_errors_return"))
        }
        Family::Standard => (0x130, 0x100, 0x200, 0x143),
    };
    Some(Library {
        family,
        byte,
        world,
        info_null,
        comm_null,
        initialized: function!(c"PMPI_Initialized"),
        finalized: function!(c"PMPI_Finalized"),
        independent: INDEPENDENT.map(symbol),
        type_size_x: function!(c"PMPI_Type_size_x")?,
        type_get_extent_x: function!(c"PMPI_Type_get_extent_x")?,
        type_get_true_extent_x: function!(c"PMPI_Type_get_true_extent_x")?,
        get_elements_x: function!(c"PMPI_Get_elements_x")?,
        set_elements_x: function!(c"PMPI_Status_set_elements_x")?,
        set_cancelled: function!(c"PMPI_Status_set_cancelled")?,
        get_position: function!(c"PMPI_File_get_position")?,
        seek: function!(c"PMPI_File_seek")?,
        read_at: function!(c"PMPI_File_read_at")?,
        error_class: function!(c"PMPI_Error_class")?,
        comm_size: function!(c"PMPI_Comm_size")?,
        comm_rank: function!(c"PMPI_Comm_rank")?,
        comm_group: function!(c"PMPI_Comm_group")?,
        group_translate_ranks: function!(c"PMPI_Group_translate_ranks")?,
        meeting: meeting(&symbol, errors_return),
        unsieving: unsieving(&symbol),
        type_null,
        group_free: function!(c"PMPI_Group_free")?,
        type_free: function!(c"PMPI_Type_free")?,
        type_contiguous: function!(c"PMPI_Type_contiguous")?,
        type_struct: function!(c"PMPI_Type_create_struct")?,
        type_commit: function!(c"PMPI_Type_commit")?,
        asking: asking(&symbol),
        info_length: function!(c"PMPI_Info_get_valuelen"),
        info_get: function!(c"PMPI_Info_get"),
        envelope: function!(c"PMPI_Type_get_envelope")?,
        contents: function!(c"PMPI_Type_get_contents")?,
        envelope_c: function!(c"PMPI_Type_get_envelope_c"),
        contents_c: function!(c"PMPI_Type_get_contents_c"),
    })
}

/// What hints are asked with.
#[allow(clippy::missing_transmute_annotations)]
fn asking(symbol: &impl Fn(&CStr) -> *mut c_void) -> Option<Asking> {
    let found = |name: &CStr| Some(symbol(name)).filter(|found| !found.is_null());
    let (keys, key) = (found(c"PMPI_Info_get_nkeys")?, found(c"PMPI_Info_get_nthkey")?);
    let (of_file, free) = (found(c"PMPI_File_get_info")?, found(c"PMPI_Info_free")?);
    // SAFETY: MPI's own prototypes, which these fields have.
    unsafe {
        use core::mem::transmute;
        Some(Asking { keys: transmute(keys), key: transmute(key), of_file: transmute(of_file), free: transmute(free) })
    }
}

impl Library {
    /// Whether there is a world, as there is none in programs with sessions alone, and none any more after MPI_Finalize.
    pub fn has_world(&self) -> bool {
        let (Some(initialized), Some(finalized)) = (self.initialized, self.finalized) else { return false };
        let (mut begun, mut ended) = (0, 0);
        // SAFETY: MPI's prototypes.
        unsafe { initialized(&raw mut begun) == 0 && begun != 0 && finalized(&raw mut ended) == 0 && ended == 0 }
    }

    /// Whether a handle of the program's is no communicator, as far as can be told without a call.
    pub fn is_no_comm(&self, comm: Handle) -> bool {
        [0, self.of(self.comm_null)].contains(&self.of(comm))
    }

    /// What makes a collective call independently, as the program itself would call it: another tool may look at it. None: there is no such function.
    pub fn independent(&self, operation: Operation, has_pointer: bool, is_large: bool) -> Option<*mut c_void> {
        let place = usize::from(operation == Operation::Write) << 2 | usize::from(has_pointer) << 1 | usize::from(is_large);
        self.independent.get(place).copied().filter(|found| !found.is_null())
    }

    /// A handle as it can be compared.
    #[inline]
    pub fn of(&self, handle: Handle) -> Handle {
        if self.family == Family::Mpich { handle & 0xffff_ffff } else { handle }
    }

    /// The handle at a place of an array of them.
    ///
    /// # Safety
    /// The array has that place.
    #[inline]
    pub unsafe fn at(&self, array: *const c_void, place: usize) -> Handle {
        // SAFETY: the caller's promise; ints in MPICH's arrays, words in the others'.
        unsafe { if self.family == Family::Mpich { array.cast::<u32>().add(place).read() as usize } else { array.cast::<usize>().add(place).read() } }
    }

    /// Bytes of an MPI_Status.
    pub const fn status_bytes(&self) -> usize {
        match self.family {
            Family::Mpich => 20,
            Family::Open => 24,
            Family::Standard => 32,
        }
    }

    /// Whether MPI_STATUS_IGNORE (or its plural) was given.
    #[inline]
    pub fn is_ignored(&self, status: *const c_void) -> bool {
        status as usize <= 1
    }

    /// Bytes that a status tells; none: not told.
    ///
    /// # Safety
    /// A status that a call has filled in.
    #[inline]
    pub unsafe fn bytes_of(&self, status: *const c_void) -> Option<i64> {
        let mut bytes = -1;
        // The datatype may be gone; bytes are elements of MPI_BYTE.
        // SAFETY: the caller's promise.
        let result = unsafe { (self.get_elements_x)(status, self.byte, &raw mut bytes) };
        (result == 0 && bytes >= 0).then_some(bytes)
    }

    /// Has a status tell so many bytes, of a call that was not cancelled.
    ///
    /// # Safety
    /// A status that is the caller's to write.
    pub unsafe fn tell_bytes(&self, status: *mut c_void, bytes: i64) {
        // SAFETY: the caller's promise.
        unsafe {
            (self.set_cancelled)(status, 0);
            (self.set_elements_x)(status, self.byte, bytes);
        }
    }

    /// What MPI says of a read of no elements: only it knows whether a type is one, and committed, and errors go where the file has them go.
    pub fn refuses(&self, file: Handle, datatype: Handle) -> Option<i32> {
        let (mut nothing, mut status) = ([0u64; 1], [0u64; 4]);
        // SAFETY: MPI's prototype.
        let result = unsafe { (self.read_at)(file, 0, nothing.as_mut_ptr().cast(), 0, datatype, status.as_mut_ptr().cast()) };
        (result != 0).then_some(result)
    }

    /// Moves the individual pointer of an open file, in elementary types; none: it is not at `from`, or does not move.
    pub fn move_pointer(&self, file: Handle, from: i64, to: i64) -> Option<()> {
        let set = if self.family == Family::Standard { 403 } else { 600 };
        let mut now = -1;
        // SAFETY: MPI's prototypes.
        unsafe { ((self.get_position)(file, &raw mut now) == 0 && now == from && (self.seek)(file, to, set) == 0).then_some(()) }
    }

    /// Whether a handle of the program's is an MPI_Info, rather than none.
    pub fn is_info(&self, info: Handle) -> bool {
        ![0, self.info_null].contains(&self.of(info))
    }

    /// How long the value of a key of an MPI_Info is; none: not set.
    pub fn value_length(&self, info: Handle, key: &CStr) -> Option<usize> {
        let (mut flag, mut length) = (0, 0);
        let ask = self.info_length.filter(|_| self.is_info(info))?;
        // SAFETY: MPI's prototype.
        let result = unsafe { ask(info, key.as_ptr(), &raw mut length, &raw mut flag) };
        usize::try_from(length).ok().filter(|_| result == 0 && flag != 0)
    }

    /// The value of a key of an MPI_Info; none: not set, or longer than `into` has room for, which to ask for would end a job of MPICH's.
    pub fn value<'a>(&self, info: Handle, key: &CStr, into: &'a mut [u8]) -> Option<&'a [u8]> {
        let mut flag = 0;
        let get = self.info_get.filter(|_| self.is_info(info))?;
        if self.value_length(info, key)? >= into.len() {
            return None;
        }
        // SAFETY: MPI's prototype; the last byte stays zero.
        let result = unsafe { get(info, key.as_ptr(), into.len() as i32 - 1, into.as_mut_ptr().cast(), &raw mut flag) };
        if result != 0 || flag == 0 {
            return None;
        }
        CStr::from_bytes_until_nul(into).ok().map(CStr::to_bytes)
    }

    /// The combiner of a type as the trace has it; none: a predefined type, or one that is newer than we are.
    pub fn combiner(&self, number: i32) -> Option<u64> {
        // In the order of each header; Fortran's variants with INTEGER addresses were taken out in MPI 3.
        const MPICH: [u64; 20] = [
            combiner::NAMED,
            combiner::DUP,
            combiner::CONTIGUOUS,
            combiner::VECTOR,
            combiner::HVECTOR,
            combiner::HVECTOR,
            combiner::INDEXED,
            combiner::HINDEXED,
            combiner::HINDEXED,
            combiner::INDEXED_BLOCK,
            combiner::STRUCT,
            combiner::STRUCT,
            combiner::SUBARRAY,
            combiner::DARRAY,
            combiner::NAMED,
            combiner::NAMED,
            combiner::NAMED,
            combiner::RESIZED,
            combiner::HINDEXED_BLOCK,
            combiner::NAMED,
        ];
        const STANDARD: [u64; 17] = [
            combiner::NAMED,
            combiner::DUP,
            combiner::CONTIGUOUS,
            combiner::VECTOR,
            combiner::HVECTOR,
            combiner::INDEXED,
            combiner::HINDEXED,
            combiner::INDEXED_BLOCK,
            combiner::HINDEXED_BLOCK,
            combiner::STRUCT,
            combiner::SUBARRAY,
            combiner::DARRAY,
            combiner::NAMED,
            combiner::NAMED,
            combiner::NAMED,
            combiner::RESIZED,
            combiner::NAMED,
        ];
        let (table, first): (&[u64], i32) = match self.family {
            Family::Mpich => (&MPICH, 1),
            Family::Open => (&MPICH, 0),
            Family::Standard => (&STANDARD, 101),
        };
        usize::try_from(number - first).ok().and_then(|place| table.get(place)).copied()
    }

    /// A storage order as the trace has it.
    pub fn order(&self, number: i32) -> u64 {
        let fortran = match self.family {
            Family::Mpich => 57,
            Family::Open => 1,
            Family::Standard => 15,
        };
        if number == fortran { order::FORTRAN } else { order::C }
    }

    /// A distribution as the trace has it.
    pub fn distribution(&self, number: i32) -> u64 {
        let (block, cyclic) = match self.family {
            Family::Mpich => (121, 122),
            Family::Open => (0, 1),
            Family::Standard => (17, 18),
        };
        match number {
            n if n == block => distribution::BLOCK,
            n if n == cyclic => distribution::CYCLIC,
            _ => distribution::NONE,
        }
    }

    /// The argument of a distribution as the trace has it.
    pub fn distribution_argument(&self, number: i32) -> u64 {
        let default = match self.family {
            Family::Mpich => -49767,
            Family::Open => -1,
            Family::Standard => 19,
        };
        if number == default { distribution::DEFAULT } else { number as u64 }
    }

    /// The access mode of an open in the numbers of MPICH and Open MPI: the standard ABI has the same bits in the order of their names.
    pub fn access_mode(&self, mode: i64) -> u64 {
        /// APPEND, CREATE, DELETE_ON_CLOSE, EXCL, RDONLY, RDWR, SEQUENTIAL, UNIQUE_OPEN, WRONLY.
        const OF_STANDARD: [u64; 9] = [128, 1, 16, 64, 2, 8, 256, 32, 4];
        match self.family {
            Family::Standard => OF_STANDARD.iter().enumerate().filter(|(bit, _)| mode >> bit & 1 != 0).map(|(_, of)| of).sum(),
            Family::Mpich | Family::Open => mode as u64,
        }
    }

    /// Where a seek counts from: 0 the beginning, 1 the position, 2 the end.
    pub fn whence(&self, number: i32) -> u64 {
        match number {
            600 | 403 => 0,
            604 | 402 => 2,
            _ => 1,
        }
    }
}
