"""Writes down which functions of the repo a Python process enters, each once, and asks of some what would happen if
they raised NotImplementedError.

Python imports this file by itself at its start, since the folder that holds it is in PYTHONPATH. The folder lies in the
repo's root. One file a process is written beside it, `<process>.trace`, a line at a time and at once, so that a kill
loses nothing:

    process <how>                     it began: `start`, or `fork` of a process that was traced
    enter <line> <name> <path>        a code object of the repo was entered; line and name as Python has them
    fails <line> <name> <path>        so was this one, and an error in its place would have ended the process
    blind <why>                       from here on something may run that is not seen

Fields are separated by tabs; paths are relative to the repo's root.
"""


def _begin():
    import os
    import sys
    import threading

    here = os.path.dirname(os.path.realpath(__file__))
    root = os.path.join(os.path.dirname(here), "")
    # Functions to ask about, and CPU and wall seconds that an answer may take.
    wanted = set()
    with open(os.path.join(here, "wanted")) as file:
        patience = [float(field) for field in file.readline().split()]
        for line in file:
            wanted.add(tuple(line.rstrip("\n").split("\t")))
    file = None
    unwritten = []
    # Code objects by their identity: their own comparison takes long, and does not look at the file.
    seen = {}
    places = {}
    alone = True
    probing = False
    switching = False
    monitoring = getattr(sys, "monitoring", None)
    main = threading.main_thread()
    threads = threading.Thread.run.__code__.co_filename
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    handed_on = [entry for entry in entries if os.path.realpath(entry) == here]

    def write(*fields):
        # Opened anew each time: the program may close or reuse any descriptor that it did not open.
        nonlocal unwritten
        unwritten.append("\t".join(fields) + "\n")
        try:
            handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError:
            return
        try:
            os.write(handle, "".join(unwritten).encode("utf-8", "surrogateescape"))
        finally:
            os.close(handle)
        unwritten = []

    def process(how):
        nonlocal file
        file = os.path.join(here, "%d.trace" % os.getpid())
        write("process", how)

    def entered(code):
        seen[id(code)] = code
        name = code.co_filename
        if name not in places:
            path = os.path.realpath(name)
            inside = not name.startswith("<") and path.startswith(root) and not path.startswith(here)
            places[name] = path[len(root):] if inside else None
        path = places[name]
        if path is None:
            return
        place = (str(code.co_firstlineno), code.co_name, path)
        if place in wanted and alone and threading.current_thread() is main and threading.active_count() == 1:
            probe(place)
        write("enter", *place)

    def probe(place):
        """Lets a fork of this process fail here; NotImplementedError is raised in the fork only."""
        nonlocal probing
        probing = True
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                pass
        try:
            child = os.fork()
        except OSError:
            probing = False
            return
        if child:
            try:
                os.waitpid(child, 0)
            except ChildProcessError:
                pass
            probing = False
            return
        import _signal as signal

        # A program that handles the error may go on for long; it is not waited for.
        for timer, ends, seconds in (
            (signal.ITIMER_PROF, signal.SIGPROF, patience[0]),
            (signal.ITIMER_REAL, signal.SIGALRM, patience[1]),
        ):
            signal.signal(ends, signal.SIG_DFL)
            signal.setitimer(timer, seconds)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGPROF, signal.SIGALRM))
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(null, descriptor)
        error = NotImplementedError()

        def at_the_top(kind, value, traceback):
            # The error has reached the process's end: it would exit with 1. What the program does when it exits, or
            # has not yet written, concerns the original.
            if value is error:
                write("fails", *place)
            os._exit(1)

        sys.excepthook = at_the_top
        if monitoring:
            monitoring.set_events(tool, 0)
        raise error

    def blind(why):
        if not probing:
            write("blind", why)

    def inherits(variables):
        folders = (os.environ if variables is None else variables).get("PYTHONPATH", "")
        return any(entry in handed_on for entry in folders.split(os.pathsep))

    def isolated(arguments):
        """Whether this starts Python with an option that keeps it from importing this file."""
        arguments = [os.fsdecode(argument) for argument in arguments]
        if not os.path.basename(arguments[0]).startswith("python"):
            return False
        for argument in arguments[1:]:
            if not argument.startswith("-") or argument in ("-", "-c", "-m"):
                return False
            if not argument.startswith("--"):
                for letter in argument[1:]:
                    if letter in "IES":
                        return True
                    if letter in "WXcm":
                        break
        return False

    def watch(event, arguments):
        nonlocal alone
        if event == "import" or event == "open" or probing:
            return
        if event in ("subprocess.Popen", "os.posix_spawn", "os.exec", "os.spawn"):
            alone = False
            if event == "subprocess.Popen":
                program, line, _, variables = arguments
                line = [line] if isinstance(line, (str, bytes)) else list(line)
            else:
                program, line, variables = arguments[-3:]
                line = list(line)
            # Popen's own program is the first argument but for `executable=`.
            if line and program is not None:
                line[0] = program
            try:
                if not inherits(variables):
                    blind("a process was started without the tracer's PYTHONPATH: %s" % " ".join(map(str, line))[:200])
                elif line and isolated(line):
                    blind("Python was started with an option that hides it: %s" % " ".join(map(str, line))[:200])
            except Exception as error:
                blind("a process was started: %r" % error)
        elif event in ("os.fork", "os.forkpty", "os.system"):
            alone = False
            if event == "os.system" and not inherits(None):
                blind("a process was started without the tracer's PYTHONPATH")
        elif event == "sys.setprofile" and not monitoring and not switching:
            if sys._getframe(1).f_code.co_filename != threads:
                blind("the program uses sys.setprofile itself")
        elif event == "_thread.start_new_thread" and not monitoring:
            if getattr(arguments[0], "__name__", "") != "_bootstrap":
                blind("a thread was started below the module threading")

    def forked():
        if probing:
            return
        nonlocal alone, unwritten
        alone = False
        unwritten = []
        process("fork")

    process("start")
    os.register_at_fork(after_in_child=forked)
    if monitoring:
        tool = next(number for number in (4, 3, 1, 0, 2, 5) if monitoring.get_tool(number) is None)
        monitoring.use_tool_id(tool, "autoexperiment")

        def start(code, offset):
            if id(code) not in seen:
                entered(code)
            return monitoring.DISABLE

        monitoring.register_callback(tool, monitoring.events.PY_START, start)
        monitoring.set_events(tool, monitoring.events.PY_START)
    else:

        def profile(frame, event, argument):
            if event == "call":
                code = frame.f_code
                if id(code) not in seen:
                    entered(code)

        def switch(on):
            nonlocal switching
            if not probing:
                switching = True
                sys.setprofile(profile if on else None)
                switching = False

        _spare_imports(root, switch, lambda: sys.getprofile() is profile)
        threading.setprofile(profile)
        sys.setprofile(profile)
    sys.addaudithook(watch)


def _spare_imports(root, switch, is_on):
    """Importing a library such as numpy calls thousands of functions, none of them the repo's: not profiled."""
    import builtins
    import os
    import sys
    import threading

    own = set()
    for _, folders, files in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".")]
        own.update(folders)
        own.update(name.partition(".")[0] for name in files)
    original = builtins.__import__
    state = threading.local()

    def spared(name, globals=None, locals=None, fromlist=(), level=0):
        inside = getattr(state, "inside", False)
        if level == 0 and name.partition(".")[0] in own:
            if not inside:
                return original(name, globals, locals, fromlist, level)
            # A library imports from the repo.
            state.inside = False
            switch(True)
            try:
                return original(name, globals, locals, fromlist, level)
            finally:
                switch(False)
                state.inside = True
        if level or inside or name in sys.modules or not is_on():
            return original(name, globals, locals, fromlist, level)
        state.inside = True
        switch(False)
        try:
            return original(name, globals, locals, fromlist, level)
        finally:
            state.inside = False
            switch(True)

    builtins.__import__ = spared


def _hand_on():
    """Leaves no trace in the import path, and runs the sitecustomize that this one hides."""
    import importlib.machinery
    import importlib.util
    import os
    import sys

    here = os.path.dirname(os.path.realpath(__file__))
    sys.path[:] = [folder for folder in sys.path if os.path.realpath(folder) != here]
    hidden = importlib.machinery.PathFinder.find_spec("sitecustomize")
    if hidden is not None and hidden.loader is not None:
        module = importlib.util.module_from_spec(hidden)
        sys.modules["sitecustomize"] = module
        hidden.loader.exec_module(module)


_hand_on()
_begin()
